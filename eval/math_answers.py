"""Answers to MATH: taken from a response, and compared with a gold (DATASETS 4).

Most are compared here, by exact rules; only what is left goes to math-verify, whose known false positives (bases, case,
kinds of brackets, rounding, broken LaTeX) are settled before or after it.
"""

import re
from fractions import Fraction

from eval.math_worker import verify
from eval.numbers import numbers_in, value_of
from eval.response import boxes, clean, cut_run_on, sentences, spoken, without_thoughts

UNITS = (
    "degrees?|cents?|dollars?|inch(?:es)?|feet|foot|ft|cm|mm|km|meters?|metres?|miles?|mph|hours?|minutes?|seconds?|days?|"
    "weeks?|months?|years?|units?|square|cubic|sq|percent|pounds?|grams?|kg|people|ways?|points?|students?|calories"
)
UNIT = re.compile(
    rf"\\(?:text|mbox|mathrm|textrm)\{{\s*(?:{UNITS})[^{{}}]*\}}(?:\^\{{?[23]\}}?)?|(?<=\d)\s*(?:{UNITS})\b\.?"
)
THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|\\,|\\!|,\\!|,\\,|,)\s*(?=\d{3}(?!\d))")
BASED = re.compile(r"^([0-9A-Fa-f]+)_\{?(?:\\text\{)?(\d+)\}*$")
MATRIX = re.compile(r"^\\begin\{([pbvBV]?matrix|array)\}(.*)\\end\{\1\}$", re.DOTALL)
LONGEST = 1500  # characters of an answer; longer ones are no answer to compare


def extract_math(response: str, truncated: bool) -> str | None:
    """The answer a response gives: its last statement, else (if it ended by itself) what its last sentence sets apart.

    Boxes that follow each other in one list are one answer; two joined by "or" are none."""
    text = without_thoughts(response)
    text = cut_run_on(text, [s for s in (*boxes(text), *spoken(text)) if s.value])
    boxed = [box for box in boxes(text) if not _is_mention(text, box)]
    said = [(s.start, s.end, _said(s.value)) for s in spoken(text)]
    said = [s for s in said if s[2] and not BOXED.search(text[s[0] : s[1]])]
    if boxed and (not said or said[-1][0] < boxed[-1].start):
        return _joined(text, boxed)
    if said:
        return said[-1][2]
    if truncated or boxed or not sentences(text):
        return None
    return _set_apart(_last_line(text))


BOXED = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])")


def _is_mention(text: str, box) -> bool:
    """A `\\boxed` without a group, in prose."""
    return box.value == "" and text[box.end - 1 : box.end] != "}"


def _joined(text: str, boxed: list) -> str | None:
    last = boxed[-1]
    if not last.value:
        return None
    values = [last.value]
    for before, after in zip(reversed(boxed[:-1]), reversed(boxed), strict=False):
        between = text[before.end : after.start]
        if re.fullmatch(r"[\s$.]*\bor\b[\s$]*", between) and before.value != after.value:
            return None
        if not re.fullmatch(r"[\s$]*(?:,|and|,\s*and)[\s$]*", between) or not before.value:
            break
        values.insert(0, before.value)
    return ", ".join(values)


def _said(value: str) -> str | None:
    """The answer in what follows "the answer is"."""
    if maths := _inline(value):
        return maths[0] if not re.match(r"\s*[$\\(]*\s*or\b", value.partition(maths[0])[2]) else None
    value = clean(value)
    value = re.split(r"(?<!\d)\.(?=\s|$)|\.(?=\s*$)|\.\s+(?=[A-Z])", value)[0].strip(" :*")
    if not value or value.endswith("?") or re.search(r"\$[A-Z]{3,}", value):
        return None
    if len(value.split()) > 4:
        return numbers_in(value)[0] if len(set(numbers_in(value))) == 1 else None
    return value


def _inline(text: str) -> list[str]:
    """The formulas of a line: $...$, \\(...\\)."""
    return [(a or b).strip() for a, b in re.findall(r"\$([^$\n]{1,1500})\$|\\\(([^\n]{1,1500}?)\\\)", text)]


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip(" \t*_-#")]
    return lines[-1] if lines else ""


def _set_apart(line: str) -> str | None:
    """A bold or displayed formula, else the last number, of a closing line."""
    last = re.split(r"(?<=[.!?])\s+(?=[A-Z])", line)[-1]
    if bold := re.findall(r"\*\*([^*]{1,400})\*\*", last):
        return (_inline(bold[-1]) or [bold[-1].strip()])[-1]
    if maths := _inline(last):
        return maths[-1]
    found = numbers_in(last)
    return found[-1] if found else None


def same_math(prediction: str, gold: str) -> bool:
    """Whether an answer is the gold: exact values; units, currency, percent and spacing are forgiven, bases, order in
    tuples, kinds of intervals and the case of letters are not."""
    if len(prediction) > LONGEST:
        return False
    a, b = normal(prediction), normal(gold)
    if not a or not b:
        return False
    return _same(a, b)


def normal(text: str) -> str:
    """An answer without what does not count: delimiters, sizes, spaces, units, currency, percent, final stop."""
    text = text.strip().strip("$").strip()
    text = re.sub(r"^\\[(\[]|\\[)\]]$", "", text).replace("−", "-").replace("**", "")
    text = re.sub(r"\\left(?![a-z])|\\right(?![a-z])|\\(?:big|Big|bigg|Bigg)[lr]?(?![a-z])", "", text)
    text = re.sub(r"\\[dtc]frac", r"\\frac", text).replace("\\lbrace", "\\{").replace("\\rbrace", "\\}")
    text = THOUSANDS.sub("", THOUSANDS.sub("", text))
    text = re.sub(r"\\\$|\\%|(?<=\d)%|\^\{?\\circ\}?|\\degree|°|(?<!\\)\\[!,;: ]|~|\\quad|\\displaystyle", "", text)
    text = re.sub(r"\$(?=[\d.])", "", UNIT.sub("", text))
    text = re.sub(r"^(?:the )?(?:answer|value|final answer) is:?\s*", "", text, flags=re.IGNORECASE)
    text = re.sub(r"\\(?:text|mbox|textbf|mathbf|mathrm|textrm)\{(?:the answer is)?([^{}]*)\}", r"\1", text, flags=re.I)
    text = re.sub(r"\\frac\s*(\d)\s*(\d)(?!\d)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\frac\s*(\{[^{}]*\})\s*(\d)(?!\d)", r"\\frac\1{\2}", text)
    text = re.sub(r"\\frac\s*(\d)\s*(\{[^{}]*\})", r"\\frac{\1}\2", text)
    text = re.sub(r"\\sqrt\s*(\w)", r"\\sqrt{\1}", text)
    text = re.sub(r"^[a-zA-Z]\s*(?:\\in|∈)\s*", "", text)
    return text.strip().rstrip(".,").strip()


def _same(a: str, b: str) -> bool:
    squeezed = [re.sub(r"\s+", "", text) for text in (a, b)]
    if squeezed[0] == squeezed[1]:
        return True
    if (based := [BASED.match(text) for text in squeezed]) != [None, None]:
        return None not in based and based[0].groups() == based[1].groups()
    exact = [_exact(text) for text in squeezed]
    if None not in exact:
        return exact[0] == exact[1]
    if _is_word(a) or _is_word(b):
        return _word(a) == _word(b)
    for compare in (_matrices, _unions, _sequences, _equations):
        if (verdict := compare(a, b)) is not None:
            return verdict
    return _by_algebra(a, b, exact)


def _exact(text: str) -> Fraction | None:
    """The value of a number, a/b or \\frac{a}{b}; None for anything else."""
    text = text.replace("{,}", "")
    if match := re.fullmatch(r"(-?)\\frac\{(-?[\d.]+)\}\{(-?[\d.]+)\}|(-?)\(?(-?[\d.]+)/(-?[\d.]+)\)?", text):
        sign, top, bottom = (match[1], match[2], match[3]) if match[2] else (match[4], match[5], match[6])
        values = value_of(top), value_of(bottom)
        if None in values or values[1] == 0:
            return None
        return (-1 if sign else 1) * values[0] / values[1]
    return value_of(text.removeprefix("+")) if re.fullmatch(r"[-+]?(?:\d+\.?\d*|\.\d+)", text) else None


def _is_word(text: str) -> bool:
    """Two letters or more and nothing else, or one capital in parentheses: no formula."""
    return re.fullmatch(r"[A-Za-z][A-Za-z' -]+|\(?[A-Z]\)", text.strip()) is not None


def _word(text: str) -> str:
    return re.sub(r"[\s()'-]", "", text).casefold()


def _matrices(a: str, b: str) -> bool | None:
    found = [MATRIX.match(text.strip()) for text in (a, b)]
    if found == [None, None]:
        return None
    if None in found:
        return False
    rows = [[row.split("&") for row in re.split(r"\\\\", m[2].strip()) if row.strip()] for m in found]
    if [len(row) for row in rows[0]] != [len(row) for row in rows[1]]:
        return False
    cells = [[normal(cell) for row in table for cell in row] for table in rows]
    return all(map(_same, *cells))


def _unions(a: str, b: str) -> bool | None:
    parts = [re.split(r"\\cup|∪", text) for text in (a, b)]
    if len(parts[0]) == len(parts[1]) == 1:
        return None
    return _same_unordered(*[[part.strip() for part in side] for side in parts])


def _sequences(a: str, b: str) -> bool | None:
    """Tuples and intervals in order, with their brackets; sets and bare lists in any order."""
    split = [_split(text) for text in (a, b)]
    if split == [None, None]:
        return None
    if None in split:
        return False
    (kind_a, items_a), (kind_b, items_b) = split
    if kind_a != kind_b:
        return False
    if kind_a:
        return len(items_a) == len(items_b) and all(map(_same, items_a, items_b))
    return _same_unordered(items_a, items_b)


def _split(text: str) -> tuple[str, list[str]] | None:
    """(its brackets, "" for a set or a bare list; its items) of a text with several items, or with \\pm."""
    text, kind = text.strip(), ""
    if text.startswith("\\{") and text.endswith("\\}"):
        items = _at_commas(text[2:-2])
    elif text[:1] in "([" and text[-1:] in ")]" and _closes_at_end(text):
        items, kind = _at_commas(text[1:-1]), text[0] + text[-1]
        if len(items) < 2:
            return None
    else:
        items = _at_commas(re.sub(r"\s+(?:and|or)\s+|,\s*and\s+", ", ", text))
        if len(items) < 2 and "\\pm" not in text:
            return None
    spread = [part for item in items for part in _plus_minus(item)]
    return kind, [normal(part) for part in spread]


def _plus_minus(text: str) -> list[str]:
    if "\\pm" not in text:
        return [text]
    return [text.replace("\\pm", "+", 1).strip().removeprefix("+"), text.replace("\\pm", "-", 1)]


def _at_commas(text: str) -> list[str]:
    """Split at the commas outside of all brackets."""
    items, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            items.append(text[start:i])
            start = i + 1
    return [item.strip() for item in (*items, text[start:]) if item.strip()]


def _closes_at_end(text: str) -> bool:
    """Whether the first bracket is closed by the last."""
    depth = 0
    for i, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if depth == 0:
            return i == len(text) - 1
    return False


def _same_unordered(a: list[str], b: list[str]) -> bool:
    left = list(b)
    for item in a:
        match = next((other for other in left if _same(item, other)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _equations(a: str, b: str) -> bool | None:
    """`x = 5` is 5; two equations with the same left side are compared by their right sides."""
    sides = [[side.strip() for side in re.split(r"(?<![<>!])=", text)] for text in (a, b)]
    lengths = [len(side) for side in sides]
    if lengths == [1, 1]:
        return None
    if lengths == [2, 1] or lengths == [1, 2]:
        long, short = (sides[0], b) if lengths[0] == 2 else (sides[1], a)
        return _same(normal(long[1]), short) if re.fullmatch(r"[a-zA-Z](?:\([a-z]\))?|\\[a-z]+", long[0]) else False
    if lengths == [2, 2] and re.sub(r"\s", "", sides[0][0]) == re.sub(r"\s", "", sides[1][0]):
        return _same(normal(sides[0][1]), normal(sides[1][1]))
    return None


def _by_algebra(a: str, b: str, exact: list[Fraction | None]) -> bool:
    """math-verify, for what can be equal at all: the same letters, no decimal against a root, no broken LaTeX."""
    if any(re.search(r"\\sqrt\s*\(|\\frac\s*\(", text) for text in (a, b)) or a.count("^") > 12:
        return False
    letters = [sorted(set(re.findall(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", text)))) for text in (a, b)]
    if letters[0] != letters[1] or bool(re.search(r"[<>]|\\[lg]eq?", a)) != bool(re.search(r"[<>]|\\[lg]eq?", b)):
        return False
    decimal = any("." in text for text, value in zip((a, b), exact, strict=True) if value is not None)
    if decimal and None in exact and not re.search(r"\d", a + b):
        return False
    return verify(gold=b, prediction=a)
