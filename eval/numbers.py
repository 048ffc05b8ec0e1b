"""Numbers in prose and LaTeX."""

import re
from dataclasses import dataclass
from fractions import Fraction

from eval.extract import Found, Statement, find, first_sentence, last_stated, sentences, unwrapped

LONGEST = 60  # digits; a longer run of digits is no answer to anything
SEPARATOR = re.compile(r"(?<=\d)(?:\{,\}|\\,|\\!|\\;|\\ |,\\!|[\u2009\u202f\u00a0]|,|')[ ]?(?=\d{3}(?!\d))")
GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?:(?: \d{3})+|(?:\.\d{3}){2,})(?![\d]|\.\d)")  # 12 000, 1.200.000
FRACTION = re.compile(r"\\[dtc]?frac[ ]*(?:\{[ ]*(-?[\d.]+)[ ]*\}|(\d))[ ]*(?:\{[ ]*(-?[\d.]+)[ ]*\}|(\d))")
TIMES_TEN = re.compile(r"(?<=\d)[ ]*(?:\\times|\\cdot|×|\*|x)[ ]*10[ ]*(?:\^|\*\*)[ ]*\{?[ ]*(-?\d{1,2})(?!\d)[ ]*\}?")
CURRENCY = re.compile(r"(?:US|CA|AU)?\\?[$€£¥₹](?=[ ]?[-\d.])|\b(?:Rs\.?|USD|EUR|GBP)[ ]?(?=\d)")
NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>-[ ]?|\+)?(?P<top>\d+(?:\.\d*)?|\.\d+)(?:e(?P<ten>[-+]?\d{1,2})\b)?"
    r"(?:(?P<mixed>[ ]+\d+)?[ ]?/[ ]?(?P<bottom>\d+)(?![\d/]))?(?P<scale>[ ]+(?:thousand|million|billion)\b)?",
    re.IGNORECASE | re.ASCII,
)
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
SMALL = dict(
    zip(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ],
        range(20),
        strict=True,
    )
)
TENS = dict(
    zip(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], range(20, 100, 10), strict=True)
)
NO_NUMBER_BEFORE = ("of", "more", "less", "or", "and", "to", "thing")  # "one of", "two or three"
LINKS = {"or", "and", "to", "versus", "vs", "-", "–", "—", "&", "/", ",", ":", "±", "\\pm"}
UNLINKS = re.compile(
    r"\b(?:not|because|when|if|since|for|per|in|of|at|each|every|after|from|than|which|with|as|out)\b|=|\*|×"
)
OPERATOR = re.compile(r"[ ]*(?:\\times|\\cdot|\\div|[-+*/×÷^x])[ ]*[-(]?[ ]*")
UNSURE = re.compile(r"\b(?:cannot|can[’']t|unable|not[ ]enough|unclear|impossible|don[’']t[ ]know)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Quantity:
    """A number in a text, and where it stands."""

    value: Fraction
    start: int
    end: int


def plain(text: str) -> str:
    """A text with its numbers as Python would write them: LaTeX, separators of thousands, currency, percent."""
    text = unwrapped(text).replace("\\%", "%").replace("\\$", "$").replace("<<", " = ").replace(">>", " ")
    text = re.sub(r"\^?\{?\\circ\}?|\\degree|°", " ", text)
    text = FRACTION.sub(lambda m: f" {m[1] or m[2]}/{m[3] or m[4]} ", text)
    text = SEPARATOR.sub("", text)
    text = GROUPS.sub(lambda m: re.sub(r"[ .]", "", m[0]), text)
    text = re.sub(r"(?<![\w)])–(?=\d)|\b(?:minus|negative)[ ]+(?=[$€£\d])", "-", text)
    return CURRENCY.sub("", TIMES_TEN.sub(r"e\1", text))


def quantities(text: str) -> list[Quantity]:
    """The numbers of a plain text, in order. Longer runs of digits than any answer has are no numbers."""
    found = []
    for match in NUMBER.finditer(text):
        if len(match[0]) <= LONGEST and (value := _value(match)) is not None:
            found.append(Quantity(value, match.start(), match.end()))
    return found


def _value(match: re.Match) -> Fraction | None:
    value = Fraction(match["top"].rstrip(".")) * Fraction(10) ** int(match["ten"] or 0)
    if match["bottom"]:
        if int(match["bottom"]) == 0:
            return None
        whole, top = (value, Fraction(int(match["mixed"]))) if match["mixed"] else (Fraction(0), value)
        value = whole + top / int(match["bottom"])
    if match["scale"]:
        value *= SCALES[match["scale"].strip().lower()]
    return -value if (match["sign"] or "").startswith("-") else value


def written(value: Fraction) -> str:
    """A number as people write it: 29, 5.5, and 1/3 where no decimal is exact."""
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    places = next(n for n in range(1, 400) if (10**n * value).denominator == 1)
    digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def value_of(text: str) -> Fraction | None:
    """The value of a text that holds one number; None if it holds none or more."""
    found = quantities(plain(text))
    return found[0].value if len(found) == 1 else None


def spelt(text: str) -> int | None:
    """The number that a text starts with in words ("twenty-five apples"); None if it starts with none."""
    total, tail, seen = 0, 0, 0
    words = re.findall(r"[a-z]+", text.lower()[:80])
    for word in words:
        if word in SMALL or word in TENS:
            tail += SMALL.get(word, TENS.get(word, 0))
        elif word == "hundred" and tail:
            tail *= 100
        elif word in SCALES and tail:
            total, tail = total + tail * SCALES[word], 0
        elif word != "and" or tail < 100:
            break
        seen += 1
    following = words[seen] if seen < len(words) else ""
    return None if seen == 0 or following in NO_NUMBER_BEFORE else total + tail


def stated_number(value: str) -> Found | None:
    """The number that a stated value comes to: behind its last "=", else the first. Found(None) for two numbers at once
    ("5 or 6") and for a sum that is not done; None if there is no number."""
    value = first_sentence(plain(value))
    if value.endswith("?"):
        return None
    side = _side(_without_asides(value))
    found = quantities(side)
    if not found:
        number = spelt(re.sub(r"^\W*(?:exactly|about|approximately|just|only|simply)\b", "", side))
        return None if number is None else Found(str(number))
    if re.match(r"[ ]*\^", side[found[0].end :]):
        return _power(side)
    if len(found) > 1 and _linked(side[found[0].end : found[1].start]):
        return Found(None)
    return Found(written(found[0].value))


def _without_asides(value: str) -> str:
    """A value without what stands in parentheses behind the number, unless it is an alternative."""
    return re.sub(r"(?<=[\w$%.])[ ]*\((?![ ]*or\b)[^()]*\)", " ", value)


def _side(value: str) -> str:
    """The side of "3 + 4 = 7" that holds the result; "7 = 3 + 4" is read too."""
    sides = [side for side in re.split(r"=|≈|\\approx", value) if quantities(side)]
    if len(sides) > 1 and len(quantities(sides[0])) == 1 and len(quantities(sides[-1])) > 1:
        return sides[0]
    return sides[-1] if sides else value


def _linked(between: str) -> bool:
    """Whether two numbers with this between them are two answers, or a sum not done, rather than one and a remark."""
    if OPERATOR.fullmatch(between):
        return True
    words = re.findall(r"[^\W\d_]+|[-–—&/,:±]|\\pm", between.lower())
    return len(words) <= 4 and not LINKS.isdisjoint(words) and UNLINKS.search(between.lower()) is None


def _power(side: str) -> Found:
    match = re.fullmatch(r"\W*?(-?\d{1,4})[ ]*\^[ ]*\{?(\d{1,2})\}?\D*", side)
    return Found(str(int(match[1]) ** int(match[2])) if match else None)


def extract_number(response: str, truncated: bool, words: bool = False) -> str | None:
    """The number a response answers (DATASETS 3): its last statement, else the last number of its last sentence.

    words: there, also a number written out. A cut-off text is not credited by a loose number."""
    return find(response, truncated, _stated, _loose_or_spelt if words else loose_number)


def _stated(text: str, truncated: bool) -> Found | None:
    ended = len(text.rstrip())

    def read(statement: Statement) -> Found | None:
        if statement.kind == "box":
            return stated_number(statement.value) or Found(None)
        if re.search(r"\\(?:boxed|fbox)\b", statement.value):
            return None  # the box speaks for itself
        if statement.kind == "hashes" and not _is_result(statement.value):
            return None
        if truncated and statement.end >= ended and re.search(r"[\d,.]$", statement.value):
            return Found(None)  # 12 may have become 120
        return stated_number(statement.value)

    return last_stated(text, read)


def _is_result(value: str) -> bool:
    """Whether `#### value` is a result and not a heading ("#### 1. Work out", "#### Day 2")."""
    value = plain(value)
    if re.match(r"\W*\d+[.):][ ]+[A-Za-z]", value):
        return False
    return re.match(r"(?:(?:the )?(?:final )?answer\b(?: is)?)?[^\w]*(?:\d|[a-z-]+$)", value, re.IGNORECASE) is not None


def loose_number(text: str) -> str | None:
    """The last number of the last sentence that has one, of the last two; behind its last "=", the first."""
    for sentence in reversed(sentences(text)[-2:]):
        if sentence.endswith("?") or UNSURE.search(sentence):
            return None
        sentence = plain(sentence)
        if found := quantities(sentence):
            if "=" in sentence and (behind := quantities(sentence.rpartition("=")[2])):
                return written(behind[0].value)
            return written(found[-1].value)
    return None


def _loose_or_spelt(text: str) -> str | None:
    for sentence in reversed(sentences(text)[-2:]):
        if (number := loose_number(sentence)) is not None:
            return number
        words = re.findall(r"[a-z-]+", sentence.lower())
        numbers = [n for i in range(len(words)) if (n := spelt(" ".join(words[i : i + 1]))) is not None]
        if numbers:
            return str(numbers[-1])
    return None


def same_number(a: str, b: str) -> bool:
    """Whether two numbers are exactly equal (29.00 is 29)."""
    values = value_of(a), value_of(b)
    return None not in values and values[0] == values[1]
