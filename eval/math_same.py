"""Whether two answers to a MATH question are the same (DATASETS 4).

Most are compared here, by exact rules; only what is left goes to math-verify, whose known false positives (bases, case,
kinds of brackets, rounding, broken LaTeX) are settled before or after it.
"""

import re
from fractions import Fraction

from eval.extract import PLAIN
from eval.math_worker import verify

LONGEST = 1500  # characters of an answer; longer ones are no answer to compare
UNITS = (
    "degrees?|deg|cents?|dollars?|inch(?:es)?|in|feet|foot|ft|yards?|cm|mm|km|meters?|metres?|centimeters?|miles?|mph|hours?|"
    "minutes?|seconds?|days?|weeks?|months?|years?|units?|square|cubic|sq|percent|pounds?|lbs?|grams?|kg|people|ways?|points?|"
    "students?|calories|liters?|gallons?|radians?|per"
)
SIGNS = str.maketrans(
    {"π": "\\pi ", "∞": "\\infty ",
     "∪": "\\cup ", "±": "\\pm ", "×": "\\times ", "·": "\\cdot ", "≤": "\\le ", "≥": "\\ge ",
     "°": "^\\circ ", "²": "^2", "³": "^3", "∈": "\\in ", "–": "-", "\u00a0": " ", "\u2009": " ", "\u202f": " "}
)  # fmt: skip
TEXT = r"\\(?:text|mbox|mathrm|textrm|textbf|textit|mathbf|operatorname)"
THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|\\,|\\!|\\ |,\\!|,\\,)\s*(?=\d{3}(?!\d))")
PLAIN_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3}(?:,\d{3})+)(?![\d,])")
BASED = re.compile(r"\(?([0-9A-Fa-f]+)\)?_\{?(\d+)\}?")
BASES = dict(
    zip(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "sixteen"],
        [*range(2, 13), 16],
        strict=True,
    )
)
MATRIX = re.compile(
    r"\\begin\{(?:[pbvBV]?matrix|array)\}(?:\{[lcr| ]*\})?(.*)\\end\{(?:[pbvBV]?matrix|array)\}", re.DOTALL
)
NUMBER = r"(?:\d+\.?\d*|\.\d+)"
EXACT = re.compile(
    rf"(?P<sign>[-+]?)(?:(?P<whole>\d+)?\\frac\{{(?P<a>[-+]?{NUMBER})\}}\{{(?P<b>[-+]?{NUMBER})\}}"
    rf"|\(?(?P<c>{NUMBER})/(?P<d>[-+]?{NUMBER})\)?|(?P<mixed>\d+)[ ](?P<e>\d+)/(?P<f>\d+)"
    rf"|(?P<plain>{NUMBER})(?:(?:\\times|\\cdot)10\^\{{?(?P<ten>-?\d{{1,3}})\}}?)?)"
)
# rules of `normal`, in order
RULES = [
    (re.compile(r"^\\[(\[]|\\[)\]]$"), ""),
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits)(?![A-Za-z])"), ""),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\lbrace|\\left\\\{"), r"\\{"),
    (re.compile(r"\\rbrace"), r"\\}"),
    (THOUSANDS, ""),
    (re.compile(r"\\\$|\$|\\%|(?<=\d)[ ]*%|\^\{?[ ]*\\circ[ ]*\}?|\\degree|\\circ(?![A-Za-z])"), ""),
    (re.compile(r"(?<!\\)\\[!,;: ]|~|\\q?quad(?![A-Za-z])"), " "),
    (re.compile(r"[€£¥](?=[ ]?\d)"), ""),
    (re.compile(rf"(?<=[\d}})])\s*{TEXT}\{{(?!\s*(?:or|and|base)\b)[^{{}}]*\}}(?:\^\{{?[23]\}}?)?"), ""),
    (re.compile(rf"(?<=\S)\s*{TEXT}\{{\s*(?:{UNITS})\b[^{{}}]*\}}(?:\^\{{?[23]\}}?)?"), ""),
    (re.compile(r"(?<=\d)\s+(?!(?:or|and|base|sqrt|pi|sin|cos|tan|log|mod)\b)[A-Za-z]{3,}(?:\s[A-Za-z]{2,})*\s*$"), ""),
    (re.compile(rf"(?<=[\d}}])\s*\b(?:{UNITS})\b\.?(?:\s+(?:{UNITS})\b)*(?:\s*\^\{{?[23]\}}?)?(?=\s*$)"), ""),
    (re.compile(rf"{TEXT}\{{([^{{}}]*)\}}"), r" \1 "),
    (re.compile(r"^\s*(?:(?:the|final)\s+)*(?:answer|value)\s+is:?\s*", re.IGNORECASE), ""),
    (re.compile(r"\\frac\s*(\d)\s*(\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\frac\s*\{([^{}]*)\}\s*(\w)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\frac\s*(\w)\s*\{"), r"\\frac{\1}{"),
    (re.compile(r"√\s*(\w+)|(?<![\\A-Za-z])sqrt\(([^()]*)\)"), r"\\sqrt{\1\2}"),
    (re.compile(r"\\sqrt\s*(\d+|\w)"), r"\\sqrt{\1}"),
    (re.compile(r"(?<![\\A-Za-z])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"\+\s*\\infty"), r"\\infty"),
    (re.compile(r"^\s*[a-zA-Z]\s*\\in(?![a-z])\s*|^\s*\([a-zA-Z](?:\s*,\s*[a-zA-Z])+\)\s*=\s*"), ""),
    (re.compile(r"(?<![\d.])(\d{1,3})((?: \d{3})+)(?![\d.])"), lambda m: m[1] + m[2].replace(" ", "")),
]  # fmt: skip


def same_math(prediction: str, gold: str) -> bool:
    """Whether an answer is the gold: exact values; units, currency, percent and spacing are forgiven, bases, order in
    tuples, kinds of intervals and the case of letters are not."""
    if len(prediction) > LONGEST:
        return False
    a, b = normal(prediction), normal(gold)
    return bool(a and b) and _same(a, b)


def normal(text: str) -> str:
    """An answer without what does not count: delimiters, sizes, spaces, units, currency, percent, final stop."""
    text = text.translate(PLAIN).translate(SIGNS).strip().strip("$").strip().rstrip(".")
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    text = _based(text)
    if not re.search(r"[(\[]|\\\{", text):  # (12,102) is an interval
        text = PLAIN_THOUSANDS.sub(lambda m: m[1].replace(",", ""), text)
    return text.strip().rstrip(".,").strip()


def _based(text: str) -> str:
    """A based number with its base as a subscript: 52_{eight}, 52 (base 8), 52 base 8 -> 52_8."""
    text = re.sub(rf"(?<=_)\{{?\s*({'|'.join(BASES)})\b\s*\}}?", lambda m: str(BASES[m[1]]), text)
    match = re.fullmatch(
        rf"\s*([0-9A-Fa-f]+)\s*_?\s*[({{]?\s*(?:in\s+)?base\s*[-_]?\s*(\d+|{'|'.join(BASES)})\s*[)}}]?\s*", text
    )
    return f"{match[1]}_{BASES.get(match[2], match[2])}" if match else text


def _same(a: str, b: str) -> bool:
    squeezed = [re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", text) for text in (a, b)]
    if squeezed[0] == squeezed[1]:
        return _is_well_formed(a)
    if (based := [BASED.fullmatch(text) for text in squeezed]) != [None, None]:
        return None not in based and based[0].groups() == based[1].groups()
    exact = [_exact(text) for text in squeezed]
    if None not in exact:
        return exact[0] == exact[1]
    if _is_word(a) or _is_word(b):
        return _word(a) == _word(b)
    for compare in (_matrices, _unions, _sequences, _equations):
        if (verdict := compare(a, b)) is not None:
            return verdict
    return _by_algebra(a, b)


def _is_well_formed(text: str) -> bool:
    return re.search(r"[\w}]", text) is not None


def _exact(text: str) -> Fraction | None:
    """The value of a number, a/b, \\frac{a}{b} or a mixed number; None for anything else."""
    match = EXACT.fullmatch(text)
    if match is None or len(text) > 100:
        return None
    if match["plain"]:
        value = Fraction(match["plain"].rstrip(".")) * Fraction(10) ** int(match["ten"] or 0)
    else:
        top, bottom = (
            Fraction(part.rstrip("."))
            for part in (match["a"] or match["c"] or match["e"], match["b"] or match["d"] or match["f"])
        )
        if bottom == 0:
            return None
        value = int(match["whole"] or match["mixed"] or 0) + top / bottom
    return -value if match["sign"] == "-" else value


def _is_word(text: str) -> bool:
    """A word of three letters or more, or one capital in parentheses: no formula."""
    return re.fullmatch(r"\(?[A-Z]\)|[A-Za-z]{3,}(?:[ '-]+[A-Za-z]+)*", text.strip()) is not None


def _word(text: str) -> str:
    return re.sub(r"[\s()'-]|^\s*(?:an?|the)\s+", "", text.strip().casefold())


def _matrices(a: str, b: str) -> bool | None:
    found = [MATRIX.fullmatch(text.strip()) for text in (a, b)]
    if found == [None, None]:
        return None
    if None in found:
        return False
    rows = [[row.split("&") for row in re.split(r"\\\\", m[1].strip()) if row.strip()] for m in found]
    if [len(row) for row in rows[0]] != [len(row) for row in rows[1]]:
        return False
    cells = [[normal(cell) for row in table for cell in row] for table in rows]
    return all(map(_same, *cells))


def _unions(a: str, b: str) -> bool | None:
    parts = [[part.strip() for part in re.split(r"\\cup(?![a-z])", text)] for text in (a, b)]
    return None if len(parts[0]) == len(parts[1]) == 1 else _same_unordered(*parts)


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
    elif text[:1] in ("(", "[") and text[-1:] in (")", "]") and _closes_at_end(text):
        items, kind = _at_commas(text[1:-1]), text[0] + text[-1]
        if len(items) < 2:
            return None
    else:
        items = _at_commas(re.sub(r"\s*,?\s+(?:and|or)\s+", ", ", text))
        if len(items) < 2 and "\\pm" not in text:
            return None
    return kind, [normal(part) for item in items for part in _plus_minus(item)]


def _plus_minus(text: str) -> list[str]:
    if "\\pm" not in text:
        return [text]
    plus = re.sub(r"(^|=)\s*\+", r"\1", text.replace("\\pm", "+", 1))
    return [plus, text.replace("\\pm", "-", 1)]


def _at_commas(text: str) -> list[str]:
    """Split at the commas outside of all brackets."""
    items, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char in ",;" and depth == 0:
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
    if len(a) != len(b) or len(a) > 12:
        return False
    left = list(b)
    for item in a:
        match = next((other for other in left if _same(item, other)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _equations(a: str, b: str) -> bool | None:
    """`x = 5` is 5, and so is `3 + 2 = 5`; two equations with the same left side are compared by their right sides."""
    sides = [[side.strip() for side in re.split(r"(?<![<>!])=", text)] for text in (a, b)]
    lengths = [len(side) for side in sides]
    if lengths == [1, 1]:
        return None
    if min(lengths) == 1:
        *lefts, right = sides[0] if lengths[0] > 1 else sides[1]
        return all(map(_is_name, lefts)) and _same(normal(right), b if lengths[0] > 1 else a)
    if lengths == [2, 2] and _is_name(sides[0][0]) and re.sub(r"\s", "", sides[0][0]) == re.sub(r"\s", "", sides[1][0]):
        return _same(normal(sides[0][1]), normal(sides[1][1]))
    return None if lengths == [2, 2] else False


def _is_name(side: str) -> bool:
    """Whether the left side of an equation names what the right side is: x, f(x), x_1, AB, \\theta, a + b, words; or is
    a sum of numbers."""
    side = re.sub(r"\s+", "", side)
    if re.fullmatch(r"[\d+*/.()-]|(?:[\d+*/.() -]|\\(?:times|cdot|div|frac)|[{}^])+", side):
        return True
    return re.fullmatch(r"(?:\\[a-z]+)?[A-Za-z]*(?:_\{?\w+\}?)?'?(?:\([\w,]+\))?(?:\+[A-Za-z])*", side) is not None


def _by_algebra(a: str, b: str) -> bool:
    """math-verify, for what can be equal at all: the same letters, the same relations, no broken LaTeX, no towers."""
    if any(
        re.search(r"\\sqrt\s*\(|\\frac\s*\(|\\pm|\^\s*\{?[^{}]*\^|\^\s*\{?-?\d{4}|\d{4}!|(?<!\\log)_", text)
        for text in (a, b)
    ):
        return False
    if a.count("{") != a.count("}") or a.count("(") != a.count(")") or a.count("^") > 12:
        return False
    letters = [sorted(set(re.findall(r"[A-Zabcdf-z]", re.sub(r"\\[A-Za-z]+", "", text)))) for text in (a, b)]
    relations = [re.findall(r"[<>=]|\\[lg]eq?(?![a-z])|\\ne", text) for text in (a, b)]
    if letters[0] != letters[1] or sorted(relations[0]) != sorted(relations[1]):
        return False
    return verify(gold=b, prediction=a)
