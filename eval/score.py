"""The grader for anyone's outputs: `python -m eval.score < responses.jsonl > graded.jsonl`

A line in is an object with `dataset`, `response` and `gold`; `task` or `subject` for bbh; `choices` (texts, or the
Hub's {"text", "label"}) where there are any; `truncated` if the response was cut off. It comes back, in order, with
`prediction` and `correct`; other keys pass through.
"""

import json
import sys
from collections.abc import Iterable, Iterator

from data.rows import bbh_options
from eval.grade import DATASETS, score


class LineError(ValueError):
    """A line that cannot be graded; the message says which and why."""


def graded(lines: Iterable[str]) -> Iterator[dict]:
    """Grade JSON lines one by one. Raises LineError at the first that cannot be."""
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            raise LineError(f"line {number}: not JSON ({error.msg})") from None
        _check(row, number)
        yield {**row, **_grade(row)}


def _check(row: object, number: int) -> None:
    if not isinstance(row, dict):
        raise LineError(f"line {number}: not an object")
    if wrong := [key for key in ("dataset", "response", "gold") if not isinstance(row.get(key), str)]:
        raise LineError(f"line {number}: {', '.join(wrong)} must be a string")
    if row["dataset"] not in DATASETS:
        raise LineError(f"line {number}: unknown dataset {row['dataset']!r}; known are {', '.join(DATASETS)}")
    if row["dataset"] == "bbh" and not isinstance(row.get("task") or row.get("subject"), str):
        raise LineError(f"line {number}: bbh needs its task")


def _grade(row: dict) -> dict:
    task = row.get("task") or row.get("subject")
    choices = row.get("choices") or ()
    if isinstance(choices, dict):
        choices = choices["text"]
    if row["dataset"] == "bbh" and not choices:
        choices = bbh_options(row.get("input", ""))
    got = score(
        row["dataset"], row["response"], row["gold"], task=task, choices=choices, truncated=bool(row.get("truncated"))
    )
    return {"prediction": got.prediction, "correct": got.correct}


def main() -> int:
    """Grade stdin to stdout; returns the exit status."""
    try:
        for row in graded(sys.stdin):
            print(json.dumps(row, ensure_ascii=False), flush=True)
    except LineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
