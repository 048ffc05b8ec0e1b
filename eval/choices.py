"""Which option a response chooses."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval.extract import NOT_FIRST, Found, Statement, find, first_sentence, last_stated, sentences, unwrapped
from eval.numbers import FRACTION

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LABEL = r"[(\[{<]?(?P<label>[A-Z])[)\]}>]?(?!\w|['’]\w)"
HEAD = re.compile(
    r"(?P<before>[^\w\n]*(?:(?i:definitely|clearly|probably|likely|simply|just|most|either|both|only)\b[^\w\n]*)*)"
    r"(?P<word>(?i:(?:the[ ]+)?(?:final[ ]+|correct[ ]+)?"
    r"(?:answer|option|choice|letter|statement)(?:[ ]+is)?)\b[^\w\n]*)?"
    r"(?P<label>[A-Za-z]|\d)(?!\w|['’]\w)(?P<rest>[^\n]*)"
)
FORMULA = re.compile(r"[ ]*(?:[\^=_+<>*]|-[ ]*\d|\\(?:cdot|times|pm|frac|sqrt|in|le|ge|ne|approx)\b)")
REMARK = re.compile(
    r"\b(?:because|since|as|not|rather|unlike|while|whereas|but|than|which|so|if|when|instead|due|though)\b|;|[.:][ ]",
    re.IGNORECASE,
)
ANOTHER = re.compile(
    r"(?:\b(?:or|and|nor)\b|[,/&])(?:[ ]*(?:or|and|maybe|possibly|perhaps|either|also|even|both|option|choice)\b)*"
    r"[ ]*(?P<label>[(\[{]?[A-Z][)\]}]?)(?=$|[ ]*[,/&.;!?]|[ ]+(?:or|and|are|is)\b)|[ ]*(?P<next>\([A-Z]\))",
)
NEAR_OR = re.compile(r"\bor\b[^.;]{0,12}?\((?P<label>[A-Z])\)")
NAMED = re.compile(r"\((?P<label>[A-Z])\)|\b(?:option|choice|letter)[ ]+\(?(?P<bare>[A-Z])\b", re.IGNORECASE)
DECLARED = re.compile(
    rf"(?:\b[Oo]ption[ ]+|\b[Cc]hoice[ ]+|\b[Aa]nswer[ ]+|\b[Ss]tatement[ ]+|(?<![\w'’])){LABEL}"
    r"[ ]+(?P<verb>is|seems|must be|has to be|would be)(?P<no>n[’']t|[ ]+not|[ ]+never)?[ ]+"
    r"(?:(?:clearly|therefore|thus|the|my)[ ]+)*"
    r"(?P<what>correct|right|best|answer|wrong|incorrect|false)(?:[ ]+(?:answer|option|choice|one))?[ ]*"
    r"(?=[.,;!\n]|$|because|since|as\b)"
)
CHOSEN = re.compile(
    r"\b(?:[Hh]ence|[Tt]herefore|[Tt]hus|[Ss]o|[Ll]eaving|[Ll]eaves|[Cc]hoose|[Cc]hose"
    r"|[Pp]ick|[Ss]elect|[Gg]o(?:ing)? (?:with|for))[,:]?[ ]+"
    r"(?:us with[ ]+|only[ ]+)?(?:it is[ ]+|it[’']s[ ]+|it must be[ ]+|the[ ]+)?(?:(?:correct|right|best)[ ]+)?"
    rf"(?:answer[ ]+|option[ ]+|choice[ ]+)?{LABEL}(?=[ ]*(?:[.,;!:\n]|$)|[ ]+(?:is|as|because|since)\b)"
)
LONE = re.compile(r"[ \t#*_(\"'$\[]*(?P<label>[A-Za-z])[ \t*_)\"'$\].:]*\Z")
START = re.compile(r"[\s*_]*(?:[Oo]ption[ ]+)?(?:\((?P<in>[A-Z])\)|(?P<out>[A-Z])[).:])(?=\s)")
LISTED = re.compile(r"\((?P<in>[A-Z])\)|(?:^|(?<=[\s*]))(?P<out>[A-Z])[).:](?=\s)", re.MULTILINE)
PRONOUN = re.compile(
    r"(?:so|thus|hence|therefore)?[, ]*(?:it|this|that|answer)"
    r"(?:[’']s|[ ]+(?:is|must be|should be|would be|has to be))[ ]+",
    re.I,
)
CONCLUSION = re.compile(r"(?:so|thus|hence|therefore|only|consequently|in conclusion|overall)\b", re.IGNORECASE)
NEGATIONS = frozenset(
    ["not", "never", "no", "neither", "nor", "cannot", "without", "unlike", "except", "rejecting", "excluding", "than"]
)
REFUSED = re.compile(
    r"(?:is|are|was|were|seems|would be)(?:n[’']t| not)? (?:wrong|incorrect|false|ruled|eliminated|excluded|out|not)\b"
)


@dataclass(frozen=True)
class Options:
    """The options of a row: letters that may be chosen, and the texts where they are known."""

    letters: str
    texts: tuple[str, ...]


def extract_choice(response: str, choices: Sequence[str], truncated: bool, most: int = 26) -> str | None:
    """The letter of the option a response chooses: its last explicit statement; else a letter that stands alone; else
    the one option whose whole text its last sentence has. None: no option, or two.

    choices: the option texts; without them any of the first `most` letters may be chosen."""
    options = Options(LETTERS[: len(choices) or most], tuple(choices))
    return find(response, truncated, lambda text, cut: _stated(text, cut, options), lambda text: _loose(text, options))


def _stated(text: str, truncated: bool, options: Options) -> Found | None:
    def read(statement: Statement) -> Found | None:
        if statement.kind == "declared":
            return Found(statement.value)
        if statement.kind == "box":
            return Found(None) if statement.value == "" else named(statement.value, options)
        if "\\boxed" in statement.value or "\\fbox" in statement.value:
            return None  # the box speaks for itself
        spelt_out = statement.value if NOT_FIRST.match(statement.value) else f"not {statement.value}"
        if statement.negated and (letter := _whole(spelt_out, options)):
            return Found(letter, literal=True)  # "Not wrong, Wrong"
        by_number = re.search(
            r"option|choice|letter", text[statement.start : statement.end - len(statement.value)], re.I
        )
        return named(statement.value, options, numbered=by_number is not None)

    found = last_stated(text, read)
    later = [s for s in _declared(text, options) if found is None or _in_a_later_sentence(text, s)]
    if later:
        found = last_stated(text, read, later)
    return found if found is not None or truncated else _alone(text, options)


def _in_a_later_sentence(text: str, statement: Statement) -> bool:
    """Whether a declaration starts its own sentence, rather than explain another ("..., since A is right")."""
    before = text[max(0, statement.start - 30) : statement.start]
    return (
        re.search(
            r"(?:^|[.!?\n:][\s\"'(]*|\b(?:no|wait|actually|so|thus|hence|therefore|think|that)[, ]+)\Z", before, re.I
        )
        is not None
    )


def _declared(text: str, options: Options) -> Iterator[Statement]:
    """ "B is correct", "(B) is not right", "so B": statements that need no word for the answer."""
    for match in DECLARED.finditer(text):
        wrong = match["what"] in ("wrong", "incorrect", "false")
        before = text[max(0, match.start() - 16) : match.start()].lower().rstrip()
        if match["label"] in options.letters and not before.endswith(("if", "whether", "neither", "nor", "that", "as")):
            yield Statement("declared", match["label"], match.start(), match.end(), wrong != bool(match["no"]))
    for match in CHOSEN.finditer(text):
        if match["label"] in options.letters and not re.search(
            r"(?:not|n[’']t|never|and|or) *\Z", text[: match.start()][-8:], re.I
        ):
            other = ANOTHER.match(text, match.end())
            if other is None:
                yield Statement("declared", match["label"], match.start(), match.end())


def named(value: str, options: Options, numbered: bool = False) -> Found | None:
    """The option that a stated value names: a letter, its number, or its text. Found(None) if it names two or one that
    the row has not; None if it names nothing. numbered: a digit is an option's number ("the correct option is 3")."""
    value = _readable(value)
    first = first_sentence(value)
    if not first or first.endswith("?"):
        return None
    if (letter := _whole(value, options) or _whole(first, options)) is not None:
        return Found(letter)
    head = HEAD.match(value)
    if head is not None and head["label"].isdigit():
        place = int(head["label"]) - 1
        if (head["word"] or numbered or _is_place(first, options)) and 0 <= place < len(options.letters):
            return Found(options.letters[place])
    elif head is not None and _is_label(head):
        return _lettered(head, options)
    labels = {m["label"] or m["bare"] for m in NAMED.finditer(first) if not _is_refused(first, m.start())}
    labels = {label for label in labels if label in options.letters}
    if len(labels) == 1:
        return Found(*labels)
    if (chosen := CHOSEN.search(value)) is not None and chosen["label"] in options.letters:
        return Found(chosen["label"])
    return Found(None) if len(labels) > 1 else by_text(first, options)


def _lettered(head: re.Match, options: Options) -> Found | None:
    """What a value that starts with a letter comes to."""
    label, rest = head["label"].upper(), head["rest"]
    before_remark = rest[: remark.start()] if (remark := REMARK.search(rest)) else rest
    tail = re.sub(r"^[)\]}>*\"'$ ]+", "", before_remark)
    others = [
        ANOTHER.match(tail),
        ANOTHER.match(re.sub(r"^[^(,]*?(?=\b(?:or|and)\b|[(])", "", tail)),
        NEAR_OR.search(tail),
    ]
    for other in others:
        if other is not None:
            letter = (other.groupdict().get("label") or other.groupdict().get("next") or "").strip("()[]{}")
            if letter in options.letters and letter != label:
                return Found(None)
    if label in options.letters:
        return Found(label)
    return None if label == "X" else Found(None)


def _is_label(head: re.Match) -> bool:
    """Whether a letter is an option's and not a word ("A faster spin", "I think") or the start of a formula."""
    label, rest = head["label"], head["rest"]
    bracketed = head["before"].endswith(("(", "[", "{", "<")) or bool(head["word"])
    if FORMULA.match(rest) and not bracketed:
        return False
    if label.islower():
        return bracketed or re.match(r"[).:\]]*[\s*$]*$|[).:][ ]", rest) is not None
    if label not in "AI" or bracketed or not re.match(r"[ ]+[a-z]", rest):
        return True
    return re.match(r"[ ]+(?:because|since|as|or|and|is|but|not|rather)\b", rest) is not None


def _is_place(value: str, options: Options) -> bool:
    """Whether a bare digit is the number of an option: only where no option has that digit itself."""
    digit = value.strip(" .*()[]$")
    return len(digit) == 1 and bool(options.texts) and not any(digit in text for text in options.texts)


def _readable(value: str) -> str:
    """A value in plain characters: \\frac{3}{4} as 3/4, no LaTeX delimiters."""
    value = FRACTION.sub(lambda m: f"{m[1] or m[2]}/{m[3] or m[4]}", unwrapped(value))
    return re.sub(r"\\[$%&#_]", lambda m: m[0][1], re.sub(r"\\[,;! ]|~", " ", value)).strip()


def words(text: str) -> list[str]:
    """The words of a text as they are compared: no case, no quotes, no punctuation around them."""
    text = unicodedata.normalize("NFKC", _readable(text)).replace("−", "-").casefold()
    stripped = (word.strip(".,;:!?\"'“”‘’«»()[]*_$`") for word in text.split())
    return [re.sub(r"(?<=\d),(?=\d{3})", "", word) for word in stripped if word]


def _whole(value: str, options: Options) -> str | None:
    """The option whose whole text a value is; a text of one letter is none, because options have letters."""
    wanted = words(value)
    if not wanted or re.fullmatch(r"[a-z]", "".join(wanted)):
        return None
    same = [letter for letter, text in zip(options.letters, options.texts, strict=False) if words(text) == wanted]
    return same[0] if len(same) == 1 else None


def by_text(sentence: str, options: Options) -> Found | None:
    """The one option whose whole text stands in a sentence and is not denied there (a part of a longer option found
    there does not count). Found(None) for two."""
    clauses = [clause for clause in re.split(r";", sentence) if clause.strip()]
    if not clauses or not options.texts:
        return None
    have = words(clauses[-1])[-400:]
    spans = []
    for letter, text in zip(options.letters, options.texts, strict=False):
        wanted = words(text)
        spans += [
            (i, i + len(wanted), letter)
            for i in range(len(have) - len(wanted) + 1)
            if wanted and have[i : i + len(wanted)] == wanted
        ]
    largest = [s for s in spans if not any(o[2] != s[2] and o[0] <= s[0] and s[1] <= o[1] for o in spans)]
    letters = {letter for start, end, letter in largest if not _denied(have, start, end)}
    if not letters:
        return None
    return Found(*letters) if len(letters) == 1 else Found(None)


def _denied(have: list[str], start: int, end: int) -> bool:
    before, after = have[max(0, start - 4) : start], " ".join(have[end : end + 4])
    return any(w in NEGATIONS or w.endswith(("n't", "n’t")) for w in before) or REFUSED.match(after) is not None


def _is_refused(sentence: str, at: int) -> bool:
    return (
        re.search(r"(?:\b(?:not|than|unlike|except)|n[’']t)\b[^.,;]{0,12}\Z", sentence[max(0, at - 24) : at], re.I)
        is not None
    )


def _alone(text: str, options: Options) -> Found | None:
    """A letter that is all of the first or the last line, or that starts one as the only option's ("B. marble")."""
    lines = [line for line in text.splitlines() if line.strip(" \t*_#-`$")]
    for line in (lines[0], lines[-1]) if lines else ():
        if (match := LONE.match(line[:40])) and (match["label"].isupper() or len(lines) == 1):
            label = match["label"].upper()
            return Found(label if label in options.letters else None)
    for at in (text, lines[-1] if lines else ""):
        if start := START.match(at):
            label = start["in"] or start["out"]
            if _listed(text) == {label} and REFUSED.match(at[start.end() :].lstrip()) is None:
                return Found(label if label in options.letters else None)
    if len(lines) == 1 and len(lines[0].split()) < 4 and not NOT_FIRST.match(lines[0]) and not REFUSED.search(lines[0]):
        return named(lines[0], options)
    return None


def _listed(text: str) -> set[str]:
    """The letters that stand in a text as options' labels."""
    return {match["in"] or match["out"] for match in LISTED.finditer(text)}


def _loose(text: str, options: Options) -> str | None:
    """What the last sentence names."""
    last = next(reversed(sentences(text)), "")
    if not last or last.endswith("?") or (START.match(last) and len(_listed(text)) > 1):
        return None
    if match := PRONOUN.match(last):
        found = (
            None
            if re.match(r"(?:not|either|neither)\b", last[match.end() :], re.I)
            else named(last[match.end() :], options)
        )
        if found is not None:
            return found.value
    if CONCLUSION.match(last):
        labels = {m["label"] or m["bare"] for m in NAMED.finditer(last)}
        refused = any(_is_refused(last, m.start()) for m in NAMED.finditer(last))
        if len(labels) == 1 and not refused and REFUSED.search(last) is None and labels <= set(options.letters):
            return labels.pop()
    found = by_text(last, options) or (
        by_text(text, options) if len(text) < 400 and len(sentences(text)) == 1 else None
    )
    return None if found is None else found.value
