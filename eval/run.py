"""Ask the questions that have no line yet, score every answer, write it down."""

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from tqdm import tqdm

from data.example import Example
from eval.grade import score
from eval.records import OutputFolder
from eval.report import Tally


class AnswerLike(Protocol):
    """What evaluate reads of an answer (safe.decode.Answer has it)."""

    text: str
    token_ids: Sequence[int]
    finish_reason: str
    verdicts: dict[str, int]
    forward_passes: Sequence[int]
    drafted: int
    seconds: dict[str, float]
    trace: Sequence | None


def evaluate(
    name: str,
    asked: Sequence[tuple[Example, str]],
    answers: Callable[[Sequence[str]], Iterator[tuple[int, AnswerLike]]],
    folder: OutputFolder,
    tally: Tally,
    *,
    peak_memory: Callable[[], int],
    shield: Callable[[], AbstractContextManager] = nullcontext,
    log: Callable[[Tally], None] | None = None,
    bar: tqdm | None = None,
) -> None:
    """Answer questions; each is scored, written and counted as soon as it is answered.

    asked: questions with their prompts. answers: prompts -> (index, answer), in order of finishing. peak_memory: bytes
    so far. shield: what happens inside is not interrupted. log: called after every line. Raises OutputError if a line
    cannot be written.
    """
    for index, answer in answers([prompt for _, prompt in asked]):
        with shield():
            line = prediction(name, *asked[index], answer, peak_memory())
            folder.append(line, trace_line(line, asked[index][1], answer))
            tally.add(line)
        if log is not None:
            log(tally)
        if bar is not None:
            show(bar, tally)


def progress(done: int, left: int, what: str) -> tqdm:
    """A bar on stderr; where that is a file, a line of it every half minute."""
    seconds = 0.1 if sys.stderr.isatty() else 30
    return tqdm(initial=done, total=done + left, desc=what, unit="question", dynamic_ncols=True, mininterval=seconds)


def show(bar: tqdm, tally: Tally) -> None:
    """One question more, with accuracy, E/T and tokens per second so far."""
    figures = {"E/T": f"{tally.ensemble_rate:.1%}"}
    if tally.accuracy is not None:
        figures = {"accuracy": f"{tally.accuracy:.1%}"} | figures
    if tally.tokens_per_second is not None:
        figures["tokens/s"] = f"{tally.tokens_per_second:.1f}"
    bar.set_postfix(figures, refresh=False)
    bar.update()


def prediction(name: str, example: Example, prompt: str, answer: AnswerLike, peak_memory: int) -> dict:
    """The line of predictions.jsonl for one answer, scored."""
    line = {"id": example.id, "subject": example.subject, "response": answer.text, "token_ids": list(answer.token_ids)}
    line |= {"prediction": None, "gold": example.gold, "correct": False, "finish_reason": answer.finish_reason}
    line |= {"tokens": len(answer.token_ids), "verdicts": answer.verdicts, "seconds": answer.seconds["total"]}
    line["seconds_by_part"] = {part: spent for part, spent in answer.seconds.items() if part != "total"}
    line |= {"forward_passes": list(answer.forward_passes), "drafted": answer.drafted}
    line |= {"peak_memory_bytes": peak_memory, "prompt_sha256": prompt_hash(prompt)}
    if example.choices:
        line["choices"] = list(example.choices)
    if example.repaired:
        line["repaired"] = True
    return scored(name, line)


def scored(name: str, line: Mapping) -> dict:
    """A line with its response scored (again)."""
    got = score(
        name,
        line["response"],
        line["gold"],
        task=line["subject"],
        choices=line.get("choices", ()),
        truncated=line["finish_reason"] == "length",
    )
    return {**line, "prediction": got.prediction, "correct": got.correct}


def prompt_hash(prompt: str) -> str:
    """What tells one prompt from another in a line."""
    return hashlib.sha256(prompt.encode("utf-8", "backslashreplace")).hexdigest()


def trace_line(line: Mapping, prompt: str, answer: AnswerLike) -> dict | None:
    """The line of trace.jsonl for one answer, if it was traced; with its prompt, so that it can be read alone."""
    if answer.trace is None:
        return None
    tokens = [token.as_json() for token in answer.trace]
    return {"id": line["id"], "subject": line["subject"], "prompt": prompt, "tokens": tokens}
