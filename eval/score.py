"""The grader for anyone's outputs: `python -m eval.score < responses.jsonl > graded.jsonl`

A line in is an object with `dataset`, `response` and `gold`; `task` or `subject` for bbh; `choices` (texts, or the
Hub's {"text", "label"}) where there are any; `truncated` if the response was cut off. It comes back, in order, with
`prediction` and `correct`; other keys pass through.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator

from data.rows import bbh_options
from data.subjects import BBH_TARGETS
from eval.choices import LETTERS
from eval.grade import DATASETS, score

GOLDS = {"arc": "[A-Za-z1-9]", "mmlu-redux": "[A-Za-z]"}


class LineError(ValueError):
    """A line that cannot be graded; the message says which and why."""


def graded(lines: Iterable[str | bytes]) -> Iterator[dict]:
    """Grade JSON lines (text or UTF-8) one by one. Raises LineError at the first that cannot be."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            _check(row)
        except json.JSONDecodeError as error:
            raise LineError(f"line {number}: not JSON ({error.msg})") from None
        except UnicodeDecodeError:
            raise LineError(f"line {number}: not UTF-8") from None
        except RecursionError:
            raise LineError(f"line {number}: nested too deeply") from None
        except ValueError as error:
            raise LineError(f"line {number}: {error}") from None
        yield {**row, **_grade(row)}


def _check(row: object) -> None:
    """Raises ValueError with what is wrong with a row."""
    if not isinstance(row, dict):
        raise ValueError("not an object")
    if missing := [key for key in ("dataset", "response", "gold") if key not in row]:
        raise ValueError(f"{', '.join(missing)} missing")
    if wrong := [key for key in ("dataset", "response", "gold") if not isinstance(row[key], str)]:
        raise ValueError(f"{', '.join(wrong)} must be a string")
    if row["dataset"] not in DATASETS:
        raise ValueError(f"unknown dataset {row['dataset']!r}; known are {', '.join(DATASETS)}")
    texts = _texts(row)
    if not isinstance(texts, list) or len(texts) > len(LETTERS) or not all(isinstance(text, str) for text in texts):
        raise ValueError('choices must be a list of texts, or {"text": [..], "label": [..]}')
    kind, gold = DATASETS[row["dataset"]], row["gold"].strip(" ()")
    if kind == "bbh" and _task(row) not in BBH_TARGETS:
        raise ValueError(f"bbh needs its task, one of {', '.join(BBH_TARGETS)}; got {_task(row)!r}")
    if kind in GOLDS and not re.fullmatch(GOLDS[kind], gold):
        raise ValueError(f"gold {row['gold']!r} is no option's letter")


def _task(row: dict) -> object:
    return row.get("task") or row.get("subject")


def _texts(row: dict) -> object:
    choices = row.get("choices") or []
    return choices.get("text") if isinstance(choices, dict) else choices


def _grade(row: dict) -> dict:
    choices = _texts(row)
    if row["dataset"] == "bbh" and not choices and isinstance(row.get("input"), str):
        choices = bbh_options(row["input"])
    cut = bool(row.get("truncated"))
    got = score(row["dataset"], row["response"], row["gold"], task=_task(row), choices=choices, truncated=cut)
    return {"prediction": got.prediction, "correct": got.correct}


def main() -> int:
    """Grade stdin to stdout; returns the exit status."""
    # a lone surrogate, which JSON can write and UTF-8 cannot, is escaped again as it came
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        for row in graded(sys.stdin.buffer):
            print(json.dumps(row, ensure_ascii=False), flush=True)
    except LineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
