"""Rows of the five benchmarks -> Examples, with every column that is used checked first.

Each parser takes a row (the Hub's columns), its index in the file and its subject, and returns an Example, or Skipped
for a row that is well-formed but not asked. A broken row raises DataError with what is wrong; the caller adds where.
"""

import re
import reprlib
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from data.example import DataError, Example, Skipped
from data.subjects import BBH_TARGETS

Row = Mapping[str, Any]

_NUMBER = re.compile(r"[-+]?\$?(\d[\d,]*(\.\d+)?|\.\d+)")

# Rows that are faulty in the published datasets: how the row's text starts and why it cannot be asked. The text is
# compared so that a corrected copy of the same row is asked after all.
_SPLIT_TITLE = "published fault: a title was cut at its comma, so no option letter is the answer"
KNOWN_BROKEN = {
    "movie_recommendation/163": ("Monsters, Inc", _SPLIT_TITLE),
    "ruin_names/99": ("dearth, wind, & fire", _SPLIT_TITLE),
    "ruin_names/144": ("rita, sue and bob poo", _SPLIT_TITLE),
    "high_school_microeconomics/99": ("https://", "published fault: a web address in place of the question"),
}

ERROR_TYPES = (
    "ok",
    "bad_question_clarity",
    "bad_options_clarity",
    "no_correct_answer",
    "multiple_correct_answers",
    "wrong_groundtruth",
    "expert",
)


def gsm8k(row: Row, index: int, subject: None = None) -> Example:
    """question, answer (worked solution, then one ``#### number``)."""
    question, answer = _text(row, "question"), _text(row, "answer")
    _, *golds = answer.split("####")
    if len(golds) != 1:
        raise DataError(f"'answer' must hold one '#### number', it holds {len(golds) or 'none'}")
    gold = golds[0].strip()
    if not _NUMBER.fullmatch(gold):
        raise DataError(f"what follows '####' in 'answer' must be a number, got {reprlib.repr(gold)}")
    return Example(str(index), question, gold)


def math500(row: Row, index: int, subject: None = None) -> Example:
    """problem, answer (LaTeX), unique_id."""
    return Example(_text(row, "unique_id"), _text(row, "problem"), _text(row, "answer").strip())


def arc(row: Row, index: int, subject: None = None) -> Example:
    """id, question, choices {text, label}, answerKey. Labels may be letters or digits: only their order counts."""
    choices = _column(row, "choices")
    if not isinstance(choices, Mapping) or not {"text", "label"} <= choices.keys():
        raise DataError(f"'choices' must be {{'text': [..], 'label': [..]}}, got {reprlib.repr(choices)}")
    texts, labels = _texts(choices["text"], "choices.text"), _texts(choices["label"], "choices.label")
    if len(labels) != len(texts) or len(set(labels)) != len(labels):
        raise DataError(f"'choices' needs a label for each of its {len(texts)} texts, got {reprlib.repr(labels)}")
    key = _text(row, "answerKey")
    if key not in labels:
        raise DataError(f"'answerKey' {key!r} is none of the labels {', '.join(labels)}")
    return Example(_text(row, "id"), _text(row, "question"), ascii_uppercase[labels.index(key)], texts)


def bbh(row: Row, index: int, subject: str) -> Example | Skipped:
    """input, target, in the task's own form."""
    id = f"{subject}/{index}"
    question, target = _text(row, "input"), _text(row, "target").strip()
    if _known_broken(id, target):
        return Skipped(id, KNOWN_BROKEN[id][1])
    if not re.fullmatch(BBH_TARGETS[subject], target):
        raise DataError(f"'target' {reprlib.repr(target)} is no answer of {subject}")
    if re.fullmatch(r"\([A-Z]\)", target) and f"\n{target} " not in question:
        raise DataError(f"'target' {target} is none of the options in 'input'")
    return Example(id, question, target, bbh_options(question), subject)


def bbh_options(question: str) -> tuple[str, ...]:
    """The option texts that a BBH question lists as `(A) ...`, a line each; none for other kinds of answers."""
    return tuple(match[1].strip() for match in re.finditer(r"^\([A-Z]\)[ \t]*([^\n]*)$", question, re.MULTILINE))


def mmlu_redux(row: Row, index: int, subject: str) -> Example | Skipped:
    """question, choices (list), answer (index of the original label), error_type, correct_answer (free text or null).

    Rows marked ok keep the original label. wrong_groundtruth takes the correction where it names one other option, and
    is marked as repaired. The other kinds of fault leave no single right option and are not asked.
    """
    id = f"{subject}/{index}"
    question, choices = _text(row, "question"), _texts(_column(row, "choices"), "choices")
    answer, kind = _column(row, "answer"), _text(row, "error_type")
    if type(answer) is not int or not 0 <= answer < len(choices):
        raise DataError(f"'answer' must be the index of a choice, 0 to {len(choices) - 1}, got {reprlib.repr(answer)}")
    if kind not in ERROR_TYPES:
        raise DataError(f"'error_type' {reprlib.repr(kind)} is none of {', '.join(ERROR_TYPES)}")
    if _known_broken(id, question):
        return Skipped(id, KNOWN_BROKEN[id][1])
    if kind == "ok":
        return Example(id, question, ascii_uppercase[answer], choices, subject)
    if kind != "wrong_groundtruth":
        return Skipped(id, f"error_type: {kind}")
    correction = _correction(_column(row, "correct_answer"), choices)
    if correction is None:
        return Skipped(id, "error_type: wrong_groundtruth, and its correct_answer names no single option")
    if correction == answer:
        return Skipped(id, "error_type: wrong_groundtruth, and its correct_answer repeats the wrong label")
    return Example(id, question, ascii_uppercase[correction], choices, subject, repaired=True)


PARSERS = {"gsm8k": gsm8k, "toy": gsm8k, "math500": math500, "arc": arc, "bbh": bbh, "mmlu-redux": mmlu_redux}


def _correction(text: object, choices: tuple[str, ...]) -> int | None:
    """The option a correct_answer names: by index ("0".."3"), by letter, or by the whole text of exactly one."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise DataError(f"'correct_answer' must be text or null, got {reprlib.repr(text)}")
    text = text.strip()
    if re.fullmatch(r"[0-9]", text):
        named = [int(text)]
    elif re.fullmatch(r"[A-Z]", text):
        named = [ascii_uppercase.index(text)]
    else:
        named = [i for i, choice in enumerate(choices) if choice.strip() == text]
    return named[0] if len(named) == 1 and named[0] < len(choices) else None


def _known_broken(id: str, text: str) -> bool:
    return id in KNOWN_BROKEN and text.startswith(KNOWN_BROKEN[id][0])


def _column(row: Row, column: str) -> Any:
    if column not in row:
        raise DataError(f"column {column!r} is missing (columns: {reprlib.repr(', '.join(map(str, row)))})")
    return row[column]


def _text(row: Row, column: str) -> str:
    return _checked(_column(row, column), column)


def _texts(values: Any, column: str) -> tuple[str, ...]:
    if not isinstance(values, list) or not 2 <= len(values) <= len(ascii_uppercase):
        raise DataError(f"{column!r} must be a list of 2 to 26 texts, got {reprlib.repr(values)}")
    return tuple(_checked(value, f"{column}[{i}]") for i, value in enumerate(values))


def _checked(value: Any, column: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{column!r} must be text, got {reprlib.repr(value)}")
    if not value.strip():
        raise DataError(f"{column!r} is empty")
    if any("\ud800" <= char <= "\udfff" for char in value):  # JSON can write them, UTF-8 cannot
        raise DataError(f"{column!r} holds a lone surrogate, which is no character")
    return value
