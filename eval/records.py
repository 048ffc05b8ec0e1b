"""The files of an output folder (SPEC 11): written line by line, never half, never twice.

A run of several processes gives each a file of its own (`predictions.rank1.jsonl`), so that no two write to one; they
are merged when the run ends, or when the next one begins. A line is flushed to the disk before the next question is
taken, and a last line that was cut off by a crash is dropped. A file that is rewritten is written beside the old one
and then takes its place.
"""

import errno
import fcntl
import json
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

PREDICTIONS, TRACE = "predictions", "trace"
MADE_OF_THEM = ("summary.json", "report.html", "config.json")
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}  # some cluster file systems; a second run goes unnoticed


class OutputError(ValueError):
    """An output folder that cannot be used; the message says why and what to do."""


@dataclass
class OutputFolder:
    """One process's hold of an output folder. rank: 0 is the main process, which alone touches the shared files."""

    path: Path
    rank: int = 0
    world: int = 1
    _lock: IO | None = field(default=None, repr=False)

    def check_writable(self) -> None:
        """Raise OutputError if the folder could not be made or written to. Makes nothing."""
        with _as_output_error(self.path):
            place = self.path.absolute()
            while not place.exists():
                place = place.parent
            if not place.is_dir():
                raise OutputError(f"{place} is a file, not a folder; name another --output_path")
            if not os.access(place, os.W_OK | os.X_OK):
                raise OutputError(f"{place} may not be written to; name another --output_path")

    @classmethod
    def claim(cls, path: Path | str, rank: int = 0, world: int = 1) -> "OutputFolder":
        """Make the folder if it is missing; the main process locks it until it ends. Raises OutputError."""
        folder = cls(Path(path), rank, world)
        if rank == 0:
            with _as_output_error(folder.path):
                folder.path.mkdir(parents=True, exist_ok=True)
                folder._lock = (folder.path / ".lock").open("w")
            try:
                _lock(folder._lock, folder.path)
            except OutputError:
                folder.close()
                raise
        return folder

    def close(self) -> None:
        """Let others have the folder."""
        if self._lock is not None:
            self._lock.close()

    def config(self) -> dict | None:
        """What config.json says; None where no run was begun. Raises OutputError for answers without one."""
        file = self.path / "config.json"
        if not file.exists():
            if any(self._files(PREDICTIONS, TRACE)):
                raise OutputError(f"{self.path}: predictions without a config.json; use --overwrite or another folder")
            return None
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise OutputError(f"{file}: not readable ({error}); use --overwrite or another folder") from error

    def prepare(self, config: Mapping, *, overwrite: bool = False) -> None:
        """Main process, once the run is sure to begin: write config.json; with overwrite, first remove what an earlier
        run wrote."""
        with _as_output_error(self.path):
            if overwrite:
                for file in [*self._files(PREDICTIONS, TRACE), *(self.path / name for name in MADE_OF_THEM)]:
                    file.unlink(missing_ok=True)
            write_json(self.path / "config.json", config)

    def lines(self) -> list[dict]:
        """All predictions, each question once."""
        found = {}
        for file in self._files(PREDICTIONS):
            for line in read_lines(file):
                found.setdefault(line["id"], line)
        return list(found.values())

    def append(self, prediction: Mapping, trace: Mapping | None = None) -> None:
        """Write one answered question. The trace goes first: a trace without its prediction is dropped later, a
        prediction without its trace would be missed. Raises OutputError if it cannot be written; then nothing is."""
        if trace is not None:
            append_line(self._own(TRACE), trace)
        append_line(self._own(PREDICTIONS), prediction)

    def merge(self, order: Iterable[str] = ()) -> None:
        """Main process: gather the lines of all ranks in one file, in the order of the questions; nothing half-written
        stays, and no trace without its prediction.

        The whole file is written beside the old one and then takes its place; only then are the rank files removed, so
        a crash at any moment loses nothing, and what is found twice is kept once. Files that are so already are left
        alone."""
        place = {name: i for i, name in enumerate(order)}
        predictions, traces = _find(self._files(PREDICTIONS)), _find(self._files(TRACE))
        ids = sorted(predictions, key=lambda name: place.get(name, len(place)))
        with _as_output_error(self.path):
            # traces first: rank files that are still there after a crash in between say what is missing
            self._gather(TRACE, [traces[name] for name in ids if name in traces])
            self._gather(PREDICTIONS, [predictions[name] for name in ids])
            for file in self._files(PREDICTIONS, TRACE):
                if file.stem not in (PREDICTIONS, TRACE):
                    file.unlink()

    def replace_lines(self, lines: Iterable[Mapping]) -> None:
        """Main process: other predictions in place of the merged ones, all or none."""
        with _as_output_error(self.path):
            _replace(self.path / f"{PREDICTIONS}.jsonl", map(_line, lines))

    def write_summary(self, summary: Mapping) -> None:
        """Main process: summary.json, whole or not at all."""
        with _as_output_error(self.path):
            write_json(self.path / "summary.json", summary)

    def _own(self, name: str) -> Path:
        return self.path / (f"{name}.jsonl" if self.world == 1 else f"{name}.rank{self.rank}.jsonl")

    def _files(self, *names: str) -> list[Path]:
        """Those that are there, the merged one before those of ranks."""
        return [
            file for n in names for file in (*self.path.glob(f"{n}.jsonl"), *sorted(self.path.glob(f"{n}.rank*.jsonl")))
        ]

    def _gather(self, name: str, spans: Sequence["_Span"]) -> None:
        """Make a file of these lines, unless it is just that."""
        file = self.path / f"{name}.jsonl"
        size = file.stat().st_size if file.exists() else 0
        ends = [0, *(span.start + span.size for span in spans)]
        in_place = all(span.file == file and span.start == end for span, end in zip(spans, ends, strict=False))
        if in_place and ends[-1] == size:
            return
        with ExitStack() as stack:
            files = {source: stack.enter_context(source.open("rb")) for source in {span.file for span in spans}}
            _replace(file, (span.read(files[span.file]) for span in spans))


class _Span(NamedTuple):
    """Where a line stands; its newline counts."""

    file: Path
    start: int
    size: int

    def read(self, file: IO[bytes]) -> bytes:
        """Its bytes."""
        file.seek(self.start)
        return file.read(self.size)


def read_lines(file: Path) -> Iterator[dict]:
    """The JSON lines of a file; one that was cut off at the end is left out. Raises OutputError for any other that is
    no line of a run."""
    return (line for line, _ in _lines_and_sizes(file))


def _lines_and_sizes(file: Path) -> Iterator[tuple[dict, int]]:
    with _as_output_error(file), file.open("rb") as lines:
        for number, data in enumerate(lines, 1):
            if not data.endswith(b"\n"):
                return
            try:
                line = json.loads(data)
            except ValueError:
                line = None
            if not isinstance(line, dict) or "id" not in line:
                raise OutputError(f"{file}, line {number}: no line of a run; remove it and its question is asked again")
            yield line, len(data)


def _find(files: Iterable[Path]) -> dict[str, _Span]:
    """The first line of each id."""
    found: dict[str, _Span] = {}
    for file in files:
        start = 0
        for line, size in _lines_and_sizes(file):
            found.setdefault(line["id"], _Span(file, start, size))
            start += size
    return found


def append_line(file: Path, value: Mapping) -> None:
    """Add one line and wait until the disk has it. If it cannot be written whole, the file is left as it was."""
    data = memoryview(_line(value))
    with _as_output_error(file), file.open("ab", buffering=0) as out:
        size = out.tell()
        try:
            while data:
                data = data[out.write(data) :]
            os.fsync(out.fileno())
        except OSError:
            with suppress(OSError):  # the first error is the one to tell; what stays is a torn line
                os.ftruncate(out.fileno(), size)
            raise


def write_json(file: Path, value: Mapping) -> None:
    """Write a JSON file, whole or not at all."""
    _replace(file, [(json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")])


def _line(value: Mapping) -> bytes:
    # a lone surrogate becomes its JSON escape
    return (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def _replace(file: Path, pieces: Iterable[bytes]) -> None:
    new = file.with_name(file.name + ".new")
    try:
        with new.open("wb") as out:
            out.writelines(pieces)
            out.flush()
            os.fsync(out.fileno())
        os.replace(new, file)
    except OSError:
        new.unlink(missing_ok=True)  # on a full disk it would be in the way of what makes room
        raise


_held: "weakref.WeakSet[IO]" = weakref.WeakSet()


def _lock(file: IO, folder: Path) -> None:
    """Hold an open file until it is closed or the process ends; children of the process do not keep it held."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(f"{folder}: another run is writing there; wait for it or name another folder") from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    _held.add(file)


def _let_go() -> None:
    for file in list(_held):
        file.close()


os.register_at_fork(after_in_child=_let_go)


@contextmanager
def _as_output_error(place: Path) -> Iterator[None]:
    """Errors of the file system inside become an OutputError that names the place and says what to do."""
    try:
        yield
    except OSError as error:
        advice = "make room there" if error.errno in FULL else "mend it or name another folder"
        raise OutputError(
            f"{error.filename or place}: {error.strerror or error}; {advice} and run the same command again: "
            "every finished line is kept"
        ) from error
