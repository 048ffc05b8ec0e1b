"""Answers out of thin air, for what runs, writes and counts them; and runs of it in processes of their own.

    python -m tests.fake_engine FOLDER N [flags]

answers N questions into FOLDER/out.
"""

import json
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from cli import run  # noqa: F401  (imported once, by the server that the processes of tests are forked from)
from cli.flags import script_parser
from cli.main import main

VERDICTS = {"oov": 1, "unanimous": 3, "confident": 2, "gated": 0, "ensembled": 2, "changed": 1}
PARTS = {"draft": 0.3, "verify": 0.2, "tokenize": 0.1, "ensemble": 0.1, "total": 0.8}


@dataclass(frozen=True)
class FakeToken:
    """One traced token."""

    id: int

    def as_json(self) -> dict:
        """As in trace.jsonl."""
        return {"id": self.id, "bytes": "61", "text": "a", "verdict": "unanimous", "changed": False}


@dataclass(frozen=True)
class FakeAnswer:
    """An answer of 8 tokens."""

    text: str
    finish_reason: str = "eos"
    trace: tuple[FakeToken, ...] | None = None
    token_ids: tuple[int, ...] = tuple(range(8))
    forward_passes: tuple[int, ...] = (9, 2)
    drafted: int = 10

    @property
    def verdicts(self) -> dict[str, int]:
        """The same for every answer."""
        return dict(VERDICTS)

    @property
    def seconds(self) -> dict[str, float]:
        """The same for every answer."""
        return dict(PARTS)


def fake_answer(prompt: str, trace: bool = False) -> FakeAnswer:
    """The first number of the prompt, doubled: right for the rows of `write_rows`, but for every third."""
    number = int("".join(char for char in prompt.split("?")[0] if char.isdigit()))
    text = f"That is \\boxed{{{2 * number + (number % 3 == 2)}}}."
    return FakeAnswer(text, trace=tuple(map(FakeToken, range(8))) if trace else None)


class FakeEngine:
    """Stands in for cli.engine.Engine. Subclasses see every question before it is answered, in `before`."""

    def __init__(self, models, config, ranks):
        self.config, self.ranks, self.paths = config, ranks, models.paths

    def load(self) -> None:
        """Nothing to load."""

    def answers(self, prompts: Sequence[str]) -> Iterator[tuple[int, FakeAnswer]]:
        """In order."""
        for index, prompt in enumerate(prompts):
            self.before(prompt)
            yield index, fake_answer(prompt, self.config.trace)

    def before(self, prompt: str) -> None:
        """Called before each answer."""

    def peak_memory(self) -> int:
        """Bytes."""
        return 1 << 30


class WaitingEngine(FakeEngine):
    """Says each question and waits for leave to answer it, until the answer is "all"."""

    connection: Connection

    def before(self, prompt: str) -> None:
        """As the class says."""
        if self.connection is not None:
            self.connection.send(prompt.split("?")[0])
            if self.connection.recv() == "all":
                type(self).connection = None


def run_waiting(connection: Connection, place: Path, count: int, more: Sequence[str], environment: dict, bytes_a_file):
    """What a process of a test does: a run whose stderr goes to a file named after its rank.

    bytes_a_file: how much the system lets it write to any file."""
    os.environ.update(environment)
    error = os.open(place / f"error{environment.get('RANK', '')}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(error, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    given = flags(place, count, *more)
    if bytes_a_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_a_file, bytes_a_file))
    WaitingEngine.connection = connection
    sys.exit(main(script_parser(("gsm8k",), "test"), given, engine=WaitingEngine))


def write_rows(file: Path, count: int) -> Path:
    """Questions in the form of GSM8K: twice n, for n from 0."""
    rows = [{"question": f"What is twice {n}?", "answer": f"{n} + {n}\n#### {2 * n}"} for n in range(count)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def flags(folder: Path, count: int, *more: str) -> list[str]:
    """The flags of a run on count such questions, into folder/out."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = folder / f"rows{count}.jsonl"
    if not rows.exists():
        write_rows(rows, count)
    return ["--model_path1", "fake/drafter", "--model_path2", "fake/verifier", "--data_name", "gsm8k",
            "--data_path", str(rows), "--output_path", str(folder / "out"), "--device", "cpu", *more]  # fmt: skip


if __name__ == "__main__":
    place, number, *others = sys.argv[1:]
    sys.exit(main(script_parser(("gsm8k",), "test"), flags(Path(place), int(number), *others), engine=FakeEngine))
