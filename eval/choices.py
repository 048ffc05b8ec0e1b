"""Which option a response chooses."""

import re
from collections.abc import Sequence

from eval.response import boxes, clean, cut_run_on, sentences, spoken, without_thoughts

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HEAD = re.compile(
    r"[\s*_$\"'“‘`\\\[{(]*(?:(?:text|mathrm|textbf|mathbf)\{)?[\s(]*"
    r"(?:(?P<word>option|choice|letter|answer|statement)\s*[:(]?\s*\(?)?(?P<label>[A-Z]|\d)(?![A-Za-z0-9])(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
DECLARED = re.compile(
    r"\b(?:option|choice|statement)?\s*[(*]{0,4}(?P<label>[A-Z])[)*]{0,4}\s+(?:is|seems|must be)\s+"
    r"(?:clearly\s+|therefore\s+)?(?:the\s+)?(?:correct|right|best|true|answer)\b"
)
CHOSEN = re.compile(
    r"\b(?:hence|therefore|thus|so|leaving|leaves|choose|chose|pick|select|go with|going with)[,:]?\s+"
    r"(?:us with\s+|only\s+)?(?:it is\s+|it's\s+|the\s+)?(?:answer\s+|option\s+|choice\s+)?"
    r"[(*]{0,4}(?P<label>[A-Z])[)*]{0,4}\s*(?=[.,;!\n]|$)"
)
EITHER = re.compile(
    r"[\s)*_\"'$}.]{0,8}(?:or|and|/|,\s*or|and/or)\s+(?:possibly\s+|maybe\s+|perhaps\s+)?(?:option\s+)?[(*]{0,4}([A-Z])\b"
)


def extract_choice(response: str, choices: Sequence[str], truncated: bool, most: int = 26) -> str | None:
    """The letter of the option a response chooses: its last explicit statement; else a lone letter at the start; else
    the one option whose whole text its last sentence has. None: no option, or two.

    choices: the option texts; without them any of the first `most` letters may be chosen."""
    allowed = LETTERS[: len(choices) or most]
    text = without_thoughts(response)
    text = cut_run_on(text, [s for s in (*boxes(text), *spoken(text)) if s.value])
    stated = _statements(text, allowed, choices)
    if stated:
        return max(stated, key=lambda pair: pair[0])[1]
    if truncated:
        return None
    if alone := re.match(r"[\s*_(\"'$]*([A-Z])(?:[).:*_\"'$\]]+(?:\s|$)|\s*$)", text):
        return alone[1] if alone[1] in allowed else None
    return _by_text(text, choices)


def _statements(text: str, allowed: str, choices: Sequence[str]) -> list[tuple[int, str | None]]:
    """(where, letter; None for two letters) of every statement that names an option of this row."""
    found: list[tuple[int, str | None]] = []
    for box in boxes(text):
        if box.value is None or box.value == "":
            continue
        named, letter = _named(box.value, allowed, choices, whole=True)
        if named:
            found.append((box.start, letter))
    for said in spoken(text):
        numbered = re.search(r"option|choice|letter|statement", text[said.start : said.end - len(said.value)], re.I)
        named, letter = _named(said.value, allowed, choices, numbered=bool(numbered))
        if named:
            found.append((said.start, letter))
    for pattern in (DECLARED, CHOSEN):
        for match in pattern.finditer(text):
            before = text[max(0, match.start() - 12) : match.start()].lower()
            if match["label"] in allowed and not before.rstrip().endswith(("not", "neither", "if")):
                found.append((match.start(), match["label"]))
    return found


def _named(
    value: str, allowed: str, choices: Sequence[str], *, whole: bool = False, numbered: bool = False
) -> tuple[bool, str | None]:
    """Whether a stated value names an option, and which; None if it names two.

    whole: nothing may follow the letter. numbered: a digit is the place of an option ("the correct option is 3")."""
    value = clean(value)
    if (head := HEAD.match(value)) is not None:
        label, rest = head["label"], head["rest"]
        if label.isdigit():
            place = int(label) - 1
            if head["word"] or numbered or _is_label(value, choices):
                return (True, allowed[place]) if 0 <= place < len(allowed) else (False, None)
        elif (label.isupper() or not rest.strip(" ).*}$")) and _is_letter(label, rest, head[0], whole):
            label = label.upper()
            if label not in allowed:
                return False, None
            other = EITHER.match(rest)
            return True, None if other and other[1] in allowed and other[1] != label else label
    letter = _by_text(value, choices)
    if letter is None and (left := CHOSEN.search(value)) and left["label"] in allowed:
        letter = left["label"]
    return letter is not None, letter


def _is_label(value: str, choices: Sequence[str]) -> bool:
    """Whether a bare digit is the number of an option: only where no option is that digit itself."""
    digit = value.strip(" .*()$")
    return len(digit) == 1 and bool(choices) and not any(digit in choice for choice in choices)


def _is_letter(label: str, rest: str, head: str, whole: bool) -> bool:
    """Whether a capital is an option's letter and not a word (`A faster spin`, `I think`)."""
    if whole:
        return not rest.strip(" )}*.$:") or rest.lstrip()[:1] in ")}.:,"
    if label not in "AI" or not re.match(r"\s+[a-z]", rest):
        return True
    return "(" in head[: head.find(label)] or re.match(r"\s+(?:because|since|as|or|and|is)\b", rest) is not None


def _by_text(text: str, choices: Sequence[str]) -> str | None:
    """The one option whose whole text stands in the last sentence (a part of a longer option found there does not
    count)."""
    parts = [clause for sentence in sentences(text)[-1:] for clause in sentence.split(";") if clause.strip()]
    if not choices or not parts:
        return None
    for last in (_words(parts[-1]), _words(text) if len(text) < 400 and len(parts) == 1 else ""):
        spans = []
        for letter, choice in zip(LETTERS, choices, strict=False):
            wanted = _words(choice)
            at = f" {last} ".find(f" {wanted} ") if wanted else -1
            if at >= 0:
                spans.append((at, at + len(wanted), letter))
        largest = [s for s in spans if not any(o != s and o[0] <= s[0] and s[1] <= o[1] for o in spans)]
        if len(largest) == 1:
            return largest[0][2]
        if largest:
            return None
    return None


def _words(text: str) -> str:
    """A text as words in lower case, one space between them."""
    return " ".join(re.findall(r"[\w/%+-]+", text.casefold()))
