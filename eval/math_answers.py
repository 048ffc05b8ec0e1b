"""The answer that a response gives to a MATH question (DATASETS 4). Whether it is right: math_same.py."""

import re

from eval.extract import Found, Statement, find, first_sentence, last_stated, sentences, unwrapped
from eval.numbers import loose_number, plain, quantities, written

FORMULA = re.compile(r"\$\$([^$]{1,1500})\$\$|\$([^$\n]{1,1500})\$|\\\(([^\n]{1,1500}?)\\\)|\\\[([^\n]{1,1500}?)\\\]")
LETTER = re.compile(r"\(([A-Z])\)[.\s]*\Z")
PLACEHOLDER = re.compile(r"\$?\\?[A-Z]{4,}$|[\[<{](?:answer|number|value)", re.IGNORECASE)


def extract_math(response: str, truncated: bool) -> str | None:
    """The answer a response gives: its last statement, else (if it ended by itself) what its last sentence ends with.

    Boxes that follow each other in one list are one answer; two joined by "or" are none."""
    return find(response, truncated, _stated, _loose)


def _stated(text: str, truncated: bool) -> Found | None:
    ended = len(text.rstrip())

    def read(statement: Statement) -> Found | None:
        value = statement.value
        if statement.kind == "box":
            return Found(value or None)
        if re.search(r"\\(?:boxed|fbox)\b", value):
            return None  # the box speaks for itself
        if statement.kind == "hashes" and not re.match(r"\W*(?:\d[^:]*$|\\)", value):
            return None
        if truncated and statement.end >= ended and re.search(r"\w$", value):
            return Found(None)  # 12 may have become 120
        return said(value, words="\\boxed{" not in text)

    return last_stated(text, read)


def said(value: str, words: bool = True) -> Found | None:
    """The answer in what follows "the answer is": its formula, or its few words.

    words: whether an answer may be a mere word ("even"); where there is a box, "the answer is clear" states nothing."""
    formulas = list(FORMULA.finditer(value))
    if formulas:
        return _formulas(value, formulas)
    first = first_sentence(value).strip()
    if not first or first.endswith("?") or PLACEHOLDER.match(first):
        return None
    short = first.rstrip(".!").strip(" :*$\"'")
    is_formula = re.search(r"\d|\\|^\(?[A-Za-z]\)?$", short) is not None
    if not short or not (is_formula or words):
        return None
    if re.fullmatch(r"[^,;]{1,40}\b(?:or)\b[^,;]{1,40}", short):
        return Found(None)
    if len(short.split()) <= 4 or re.search(r"\\[a-z]", short):
        return Found(short)
    numbers = {quantity.value for quantity in quantities(plain(short))}
    return Found(written(*numbers)) if len(numbers) == 1 else None


def _formulas(value: str, formulas: list[re.Match]) -> Found:
    """The first formula of a value, with those that are listed with it; two joined by "or" are no answer."""
    texts = [_content(formulas[0])]
    for before, after in zip(formulas, formulas[1:], strict=False):
        gap = value[before.end() : after.start()].strip()
        if gap == "or":
            return Found(None)
        if gap not in (",", "and", ", and"):
            break
        texts.append(_content(after))
    return Found(", ".join(texts) or None)


def _content(formula: re.Match) -> str:
    return next(group for group in formula.groups() if group is not None).strip()


def _loose(text: str) -> str | None:
    """What the last sentence ends with: a formula (behind its "=" where that defines no letter), a choice in
    parentheses, else a number."""
    last = next(reversed(sentences(text)), "")
    if last.endswith("?"):
        return None
    if formulas := list(FORMULA.finditer(last)):
        content = _content(formulas[-1])
        left, equals, right = content.rpartition("=")
        return right.strip() if equals and not re.fullmatch(r"\s*[a-zA-Z]\s*", left) else content
    if choice := LETTER.search(unwrapped(last)):
        return f"({choice[1]})"
    return loose_number(last)
