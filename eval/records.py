"""The files of an output folder (SPEC 11): written line by line, never half, never twice.

A run of several processes gives each a file of its own (`predictions.rank1.jsonl`), so that no two write to one; they
are merged when the run ends, or when the next one begins. A line is flushed to the disk before the next question is
taken, and a last line that was cut off by a crash is dropped.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

PREDICTIONS, TRACE = "predictions", "trace"

# what may differ between two commands that continue one folder: it changes no answer
FREE = ("revisions", "limit", "batch_size", "overwrite", "output_path", "report_to", "versions", "data_hashes")


class OutputError(ValueError):
    """An output folder that cannot be used; the message says why and what to do."""


@dataclass
class OutputFolder:
    """One process's hold of an output folder. rank: 0 is the main process, which alone touches the shared files."""

    path: Path
    rank: int = 0
    world: int = 1
    _lock: IO | None = field(default=None, repr=False)

    @classmethod
    def claim(cls, path: Path, rank: int = 0, world: int = 1) -> "OutputFolder":
        """Make the folder if it is missing; the main process locks it until it ends. Raises OutputError."""
        folder = cls(Path(path), rank, world)
        if rank == 0:
            with _as_output_error(folder.path):
                folder.path.mkdir(parents=True, exist_ok=True)
                folder._lock = (folder.path / ".lock").open("w")
                try:
                    fcntl.flock(folder._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise OutputError(
                        f"{path}: another run is writing there; wait for it or name another folder"
                    ) from None
        return folder

    def prepare(self, config: dict, *, overwrite: bool = False) -> None:
        """Main process, once the run is sure to begin: check or write config.json, mend what a crash left."""
        with _as_output_error(self.path):
            if overwrite:
                for file in self._files("*"):
                    file.unlink()
                for name in ("config.json", "summary.json"):
                    (self.path / name).unlink(missing_ok=True)
            self.check(config)
            if config["revisions"] or not (self.path / "config.json").exists():
                write_json(self.path / "config.json", config)
            for file in self._files("*"):
                drop_torn_line(file)
            self.merge()

    def check(self, config: dict) -> None:
        """Raises OutputError if the folder holds results of other settings; names them."""
        file = self.path / "config.json"
        if not file.exists():
            if any(self._files("*")):
                raise OutputError(f"{self.path}: predictions without a config.json; use --overwrite or another folder")
            return
        try:
            old = json.loads(file.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise OutputError(f"{file}: not readable ({error}); use --overwrite or another folder") from None
        new = json.loads(json.dumps(config))
        differing = [key for key in sorted({*new} - {*FREE}) if old.get(key) != new[key]]
        if differing:
            shown = ", ".join(f"{key} ({old.get(key)!r}, now {new[key]!r})" for key in differing)
            raise OutputError(
                f"{self.path} holds results of other settings: {shown}; use --overwrite or another folder"
            )

    def answered(self) -> set[str]:
        """The ids of all questions that have a line."""
        return {line["id"] for line in self.lines()}

    def lines(self) -> list[dict]:
        """All predictions, each question once."""
        found = {}
        for file in self._files(PREDICTIONS):
            for line in read_lines(file):
                found.setdefault(line["id"], line)
        return list(found.values())

    def append(self, prediction: dict, trace: dict | None = None) -> None:
        """Write one answered question. The trace goes first: a trace without its prediction is dropped later, a
        prediction without its trace would be missed. Raises OutputError if it cannot be written; then nothing is."""
        if trace is not None:
            append_line(self._own(TRACE), trace)
        append_line(self._own(PREDICTIONS), prediction)

    def merge(self, order: Sequence[str] = ()) -> None:
        """Main process: gather the lines of all ranks in one file, in the order of the questions.

        The whole file is written beside the old one and then takes its place; only then are the rank files removed, so
        a crash at any moment loses nothing, and what is found twice is kept once."""
        place = {name: i for i, name in enumerate(order)}
        lines = sorted(self.lines(), key=lambda line: place.get(line["id"], len(place)))
        ids = {line["id"] for line in lines}
        traces = {}
        for file in self._files(TRACE):
            traces.update((line["id"], line) for line in read_lines(file) if line["id"] in ids)
        ranks = [file for name in (PREDICTIONS, TRACE) for file in self._files(name) if file.name != f"{name}.jsonl"]
        with _as_output_error(self.path):
            replace_lines(self.path / f"{PREDICTIONS}.jsonl", lines)
            if traces:
                kept = [traces[line["id"]] for line in lines if line["id"] in traces]
                replace_lines(self.path / f"{TRACE}.jsonl", kept)
            for file in ranks:
                file.unlink()

    def write_summary(self, summary: dict) -> None:
        """Main process: summary.json, whole or not at all."""
        with _as_output_error(self.path):
            write_json(self.path / "summary.json", summary)

    def _own(self, name: str) -> Path:
        return self.path / (f"{name}.jsonl" if self.world == 1 else f"{name}.rank{self.rank}.jsonl")

    def _files(self, name: str) -> list[Path]:
        names = (PREDICTIONS, TRACE) if name == "*" else (name,)
        return [
            file for n in names for file in (*self.path.glob(f"{n}.jsonl"), *sorted(self.path.glob(f"{n}.rank*.jsonl")))
        ]


def read_lines(file: Path) -> Iterable[dict]:
    """The JSON lines of a file. Raises OutputError for a line that is none."""
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                if line.endswith("\n"):
                    raise OutputError(
                        f"{file}, line {number}: not JSON; mend or remove it, or use --overwrite"
                    ) from None
                return  # cut off while it was written


def append_line(file: Path, value: dict) -> None:
    """Add one line and wait until the disk has it. If it cannot be written whole, the file is left as it was."""
    data = memoryview(_line(value).encode("utf-8", "backslashreplace"))
    with _as_output_error(file), file.open("ab", buffering=0) as out:
        size = out.tell()
        try:
            while data:
                data = data[out.write(data) :]
            os.fsync(out.fileno())
        except OSError:
            os.ftruncate(out.fileno(), size)
            raise


def _line(value: dict) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def drop_torn_line(file: Path) -> None:
    """Remove a last line that was cut off while it was written."""
    with file.open("rb+") as lines:
        data = lines.read()
        end = data.rfind(b"\n") + 1
        if end < len(data):
            lines.truncate(end)


def write_json(file: Path, value: dict) -> None:
    """Write a JSON file, whole or not at all."""
    _replace(file, lambda out: out.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n"))


def replace_lines(file: Path, lines: Iterable[dict]) -> None:
    """Write a file of JSON lines, whole or not at all."""
    _replace(file, lambda out: out.writelines(map(_line, lines)))


def _replace(file: Path, write: Callable[[IO], object]) -> None:
    new = file.with_name(file.name + ".new")
    with new.open("w", encoding="utf-8", errors="backslashreplace") as out:  # a lone surrogate becomes its JSON escape
        write(out)
        out.flush()
        os.fsync(out.fileno())
    os.replace(new, file)


class _as_output_error:
    """Errors of the file system inside become an OutputError that names the place."""

    def __init__(self, place: Path):
        self.place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, trace) -> None:
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise OutputError(
                f"{self.place}: {reason}; every finished line is kept: mend it and run the same command again"
            ) from error
