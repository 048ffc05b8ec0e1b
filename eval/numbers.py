"""Numbers in prose and LaTeX."""

import re
from fractions import Fraction

from eval.response import Statement, boxes, clean, cut_run_on, hashes, sentences, spoken, without_thoughts

NUMBER = re.compile(r"(?<![\w.)])-?(?:\d+(?:\.\d+)?|\.\d+)|(?<![\d.])(?:\d+(?:\.\d+)?|\.\d+)")
WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
WORDS = f"{WORDS} eighteen nineteen twenty".split()
LONGEST = 60  # digits; a longer run of digits is no answer to anything


def plain(text: str) -> str:
    """Numbers as Python would write them: Unicode minus, LaTeX and thousands separators, currency, \\text."""
    text = text.replace("−", "-").replace("–", "-").replace("\\$", "$").replace("\\%", "%")
    text = re.sub(r"\\(?:text|mbox|textbf|mathbf|mathrm|bf|rm)\{([^{}]*)\}", r" \1 ", text)
    text = re.sub(r"(?<=\d)(?:\{,\}|\\,|\\!|\\;|,\\!|[\u2009\u202f\u00a0 ]|,)(?=\d{3}(?!\d))", "", text)
    return re.sub(r"(?<=[-\s(])[$€£¥](?=[\d.])|^[$€£¥](?=[-\d.])", "", re.sub(r"-[$€£¥](?=\d)", "-", text))


def numbers_in(text: str) -> list[str]:
    """All numbers of a text, in order."""
    return [m for m in NUMBER.findall(plain(text)) if len(m) <= LONGEST]


def value_of(number: str) -> Fraction | None:
    """The exact value of a number as `numbers_in` gives it."""
    try:
        return Fraction(number) if len(number) <= LONGEST else None
    except (ValueError, ZeroDivisionError):
        return None


TWO = ""  # "5 or 6" states no number, and takes back what was stated before


def stated_number(value: str) -> str | None:
    """The number that a stated value comes to: behind its last "=", else the first; None if there is none, TWO if there
    are two to choose from."""
    value = re.sub(r"\([^()]*\)", " ", plain(clean(value))) if not re.fullmatch(r"\s*\([^()]*\)\W*", value) else value
    value = sentences(value)[0] if sentences(value) else value
    if value.rstrip().endswith("?"):
        return None
    tail = value.rpartition("=")[2]
    found = numbers_in(tail) or numbers_in(value)
    if len(found) > 1 and re.search(rf"{re.escape(found[0])}\W{{0,12}}\bor\b\W{{0,12}}{re.escape(found[1])}", tail):
        return TWO
    return found[0] if found else None


def extract_number(response: str, truncated: bool, words: bool = False) -> str | None:
    """The number a response answers (DATASETS 3): its last statement, else the last number of its last sentence.

    words: also numbers up to twenty written out. A cut-off text is not credited by a loose number."""
    text = without_thoughts(response)
    text = cut_run_on(text, [s for s in (*boxes(text), *hashes(text), *spoken(text)) if s.value])
    stated = sorted((*boxes(text), *hashes(text), *spoken(text)), key=lambda s: s.start)
    meant = [s for s in stated if s.kind == "box" or _number(s) is not None]
    if meant and not (meant[-1].kind == "box" and meant[-1].value == "" and len(meant) == 1 and not truncated):
        return _number(meant[-1]) or None
    if truncated or (meant and not numbers_in(text)):
        return None
    for sentence in reversed(sentences(text)[-2:]):
        if found := numbers_in(sentence):
            return found[-1]
        if words and (spelt := [w for w in re.findall(r"[a-z]+", sentence.lower()) if w in WORDS]):
            return str(WORDS.index(spelt[-1]))
    return None


def _number(statement: Statement) -> str | None:
    if not statement.value:
        return None
    if statement.kind == "hashes":  # a number that ends its line; else it is a heading
        found = re.fullmatch(r"[^\d\n]{0,4}-?[$€£¥]?[\d.,{}\\! ]*\d(?:\.\d*)?\s*[^\d\n]{0,24}", statement.value)
        heading = re.match(r"\d+[.):]\s", statement.value)
        return stated_number(statement.value) if found and not heading else None
    return stated_number(statement.value)


def same_number(a: str, b: str) -> bool:
    """Whether two numbers are exactly equal (29.00 is 29)."""
    values = [value_of(found[0]) if len(found := numbers_in(text)) == 1 else None for text in (a, b)]
    return None not in values and values[0] == values[1]
