"""Ask the questions that have no line yet, score every answer, write it down."""

import hashlib
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from tqdm import tqdm

from data.example import Example
from eval.grade import score
from eval.records import OutputFolder


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


class Stopped(Exception):
    """A signal asked the run to end; number is the signal's."""

    def __init__(self, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class _Stop:
    """SIGINT and SIGTERM end the run at once, except while a line is being written: then right after it."""

    def __init__(self):
        self.writing, self.pending = False, None

    def __call__(self, number: int, frame) -> None:
        if self.writing:
            self.pending = number
        else:
            raise Stopped(number)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        self.writing = True
        yield
        self.writing = False
        if self.pending is not None:
            raise Stopped(self.pending)


def evaluate(
    name: str,
    asked: Sequence[tuple[Example, str]],
    answer: Callable[[Iterable[str]], Iterator[tuple[int, AnswerLike]]],
    folder: OutputFolder,
    *,
    peak_memory: Callable[[], int],
    log: Callable[[dict], None] = lambda line: None,
    show: bool = True,
) -> None:
    """Answer questions and append a line for each as soon as it is answered.

    asked: the questions without a line, with their prompts. answer: prompts -> (index, answer) in order of finishing.
    log: called with every line. show: a progress bar. Raises Stopped on SIGINT or SIGTERM, every line written being
    whole; OutputError if a line cannot be written."""
    stop = _Stop()
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with _Bar(len(asked), show) as bar:
            for index, given in answer(prompt for _, prompt in asked):
                line = prediction(name, *asked[index], given, peak_memory())
                with stop.held_back():
                    folder.append(line, _trace_line(line, given))
                log(line)
                bar.add(line)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def prediction(name: str, example: Example, prompt: str, answer: AnswerLike, memory: int) -> dict:
    """The line of predictions.jsonl for one answer, scored."""
    line = {"id": example.id, "subject": example.subject, "response": answer.text, "token_ids": list(answer.token_ids)}
    line |= {"prediction": None, "gold": example.gold, "correct": False, "finish_reason": answer.finish_reason}
    line |= {"tokens": len(answer.token_ids), "verdicts": answer.verdicts, "seconds": answer.seconds["total"]}
    line["seconds_by_part"] = {part: spent for part, spent in answer.seconds.items() if part != "total"}
    line |= {"forward_passes": list(answer.forward_passes), "drafted": answer.drafted, "peak_memory_bytes": memory}
    line["prompt_sha256"] = hashlib.sha256(prompt.encode("utf-8", "backslashreplace")).hexdigest()
    if example.choices:
        line["choices"] = list(example.choices)
    if example.repaired:
        line["repaired"] = True
    return line | rescored(name, line)


def rescored(name: str, line: dict) -> dict:
    """The prediction and its verdict for a stored line."""
    got = score(
        name,
        line["response"],
        line["gold"],
        task=line["subject"],
        choices=line.get("choices", ()),
        truncated=line["finish_reason"] == "length",
    )
    return {"prediction": got.prediction, "correct": got.correct}


def _trace_line(line: dict, answer: AnswerLike) -> dict | None:
    if answer.trace is None:
        return None
    return {"id": line["id"], "subject": line["subject"], "tokens": [token.as_json() for token in answer.trace]}


class _Bar:
    """Progress with running accuracy, E/T and tokens per second."""

    def __init__(self, total: int, show: bool):
        self.bar = tqdm(total=total, disable=not show, unit="question", dynamic_ncols=True)
        self.n = self.correct = self.tokens = self.ensembled = 0
        self.seconds = 0.0

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *error) -> None:
        self.bar.close()

    def add(self, line: dict) -> None:
        self.n += 1
        self.correct += line["correct"]
        self.tokens += line["tokens"]
        self.ensembled += line["verdicts"]["ensembled"]
        self.seconds += line["seconds"]
        rate = f"{self.ensembled / max(self.tokens, 1):.1%}"
        speed = f"{self.tokens / self.seconds:.1f}" if self.seconds else "-"
        self.bar.set_postfix(
            {"accuracy": f"{self.correct / self.n:.1%}", "E/T": rate, "tokens/s": speed}, refresh=False
        )
        self.bar.update()
