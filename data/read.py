"""Rows from local files and from the Hub, as plain dictionaries with the place each came from.

Local files are read by plain readers, not through ``datasets``: that would copy them into the user's cache, need one
schema for all rows, and answer a torn line with a traceback instead of its number.
"""

import functools
import hashlib
import json
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.example import DataError

SUFFIXES = (".jsonl", ".json", ".parquet")


@dataclass(frozen=True)
class Table:
    """The rows of one file or one Hub config, each with its place for messages ("line 3")."""

    source: str
    rows: tuple[tuple[str, Any], ...]
    sha256: str | None = None  # of a local file


def read_file(path: Path) -> Table:
    """A .jsonl, .json (a list of rows, an object with ``examples``, or JSON lines) or .parquet file."""
    if path.suffix not in SUFFIXES:
        raise DataError(f"{path} is no folder and no {', '.join(SUFFIXES)} file; check --data_path")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check --data_path") from error
    rows = _parquet(content, path) if path.suffix == ".parquet" else _json(content, path)
    if not rows:
        raise DataError(f"{path} holds no rows; give a file with the columns of the Hub's dataset")
    return Table(str(path), tuple(rows), hashlib.sha256(content).hexdigest())


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; DataError where there is nothing or no right to look."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check --data_path") from error


def one_file(folder: Path) -> Path:
    """The only usable file of a folder."""
    files = _usable(folder)
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise DataError(f"{folder} must hold one {'/'.join(SUFFIXES)} file (found: {names}); name it in --data_path")
    return files[0]


def subject_files(folder: Path, subjects: Sequence[str]) -> dict[str, Path]:
    """The file of each subject, named ``<subject>.jsonl`` (or .json, .parquet)."""
    found: dict[str, list[Path]] = {}
    for file in _usable(folder):
        found.setdefault(file.stem, []).append(file)
    missing = [subject for subject in subjects if subject not in found]
    if missing:
        there = ", ".join(sorted(found)) or "no such file at all"
        raise DataError(
            f"{folder} has no {missing[0]}{'/'.join(SUFFIXES)} "
            f"({len(missing)} of {len(subjects)} subjects are missing); "
            f"add the files or choose with --subjects from: {there}"
        )
    for subject in subjects:
        if len(found[subject]) > 1:
            names = " and ".join(file.name for file in found[subject])
            raise DataError(f"{folder} holds {names}; keep one file for a subject")
    return {subject: found[subject][0] for subject in subjects}


def read_hub(hub_id: str, config: str, split: str) -> Table:
    """One config of a public dataset, from the Hub or from the cache of an earlier download.

    Raises DataError, within seconds, where neither has it.
    """
    import datasets
    from huggingface_hub.utils import httpx

    commit, problem = hub_commit(hub_id)
    if commit is None:  # else every look-up would be retried for half a minute before the cache is tried
        datasets.config.HF_HUB_OFFLINE = True
    try:
        table = datasets.load_dataset(hub_id, config, split=split)
    except (OSError, ValueError, RuntimeError, httpx.HTTPError, datasets.exceptions.DatasetsError) as error:
        cause = " ".join((problem or str(error)).split())[:200]
        raise DataError(
            f"cannot load {hub_id} ({config}, {split}) from the Hugging Face Hub ({cause}) nor from its cache; "
            "give its rows with --data_path FILE|DIR (.jsonl, .json or .parquet with the Hub's columns)"
        ) from error
    rows = tuple((f"row {i}", row) for i, row in enumerate(table.to_list(), 1))
    return Table(f"{hub_id}@{commit or 'cache'}", rows)


@functools.cache
def hub_commit(hub_id: str) -> tuple[str | None, str | None]:
    """The commit a dataset is at, asked once and with no retries, or None and why the Hub could not say."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils import httpx

    try:
        return HfApi().dataset_info(hub_id, timeout=10).sha, None
    except (OSError, httpx.HTTPError) as error:
        return None, str(error) or type(error).__name__


def _usable(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file())
    except OSError as error:
        raise DataError(f"cannot list {folder}: {error.strerror}; check --data_path") from error


def _parquet(content: bytes, path: Path) -> list[tuple[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(pyarrow.BufferReader(content)).to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is no readable parquet file ({str(error).splitlines()[0]}); fetch it again") from error
    return [(f"row {i}", row) for i, row in enumerate(rows, 1)]


def _json(content: bytes, path: Path) -> list[tuple[str, Any]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8; save the file as UTF-8") from error
    if path.suffix == ".json":
        whole = _whole(text, path)
        if whole is not None:
            return [(f"row {i}", row) for i, row in enumerate(whole, 1)]
    # Not splitlines(): texts may hold U+2028 and other characters that end a line for Python but not in JSON lines.
    lines = [(f"line {i}", line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    return [(place, _parsed(line, f"{path}, {place}")) for place, line in lines]


def _whole(text: str, path: Path) -> list[Any] | None:
    """The rows of a .json document; None where the file is JSON lines after all."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        if text.lstrip().startswith("{"):
            return None
        document = _parsed(text, str(path))
    if isinstance(document, dict):
        document = document.get("examples", [document])
    if not isinstance(document, list):
        raise DataError(f"{path} must be a list of rows; see the Hub's columns")
    return document


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno} of it, " if error.lineno > 1 else ""
        raise DataError(f"{place}: not JSON ({at}column {error.colno}: {error.msg}); mend or remove it") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise DataError(f"{place}: JSON that cannot be read ({error}); mend or remove it") from error
