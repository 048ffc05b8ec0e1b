"""Benchmarks as Examples: from the Hub, or from local files with the Hub's columns."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from data import subjects as subjects_of
from data.example import DataError, Example, Loaded, Skipped
from data.read import Table, is_folder, one_file, read_file, read_hub, subject_files
from data.rows import PARSERS

__all__ = ["DataError", "Loaded", "load"]

# Plain data everywhere: `datasets` runs no loading scripts any more. Where there are subjects each is a config.
HUB = {
    "gsm8k": ("openai/gsm8k", "main"),
    "math500": ("HuggingFaceH4/MATH-500", "default"),
    "arc": ("allenai/ai2_arc", "ARC-Challenge"),
    "bbh": ("SaylorTwift/bbh", None),
    "mmlu-redux": ("edinburgh-dawg/mmlu-redux-2.0", None),
}
SPLIT = "test"
TOY = Path(__file__).resolve().parent.parent / "demo" / "toy_test.jsonl"


def load(
    name: str,
    data_path: str | Path | None = None,
    *,
    subjects: Sequence[str] | None = None,
    limit: int | None = None,
) -> Loaded:
    """The questions of one benchmark, every row checked.

    Arguments:
        name: gsm8k, math500, arc, toy, or bbh, mmlu-redux, which have subjects.
        data_path: a .jsonl, .json or .parquet file with the Hub's columns, or a folder: with one such file, or for
            bbh and mmlu-redux with a file a subject. None: from the Hub (toy: from this repository).
        subjects: None for the paper's, ["all"], or names.
        limit: the first so many questions, of each subject where there are any.
    Returns the questions in file order, and the rows left out before the last of them (known faults of the published
    data, MMLU-Redux rows without one right option).
    Raises DataError: unknown name or subject, nothing at the path, no network, a broken row.
    """
    if name not in PARSERS:
        raise DataError(subjects_of.unknown(name, list(PARSERS), "benchmark"))
    if limit is not None and limit < 1:
        raise DataError(f"limit must be at least 1, got {limit}")
    if name not in subjects_of.ALL and subjects is not None:
        raise DataError(f"{name} has no subjects; leave --subjects out")
    tables = _tables(name, None if data_path is None else Path(data_path), subjects)
    examples: list[Example] = []
    skipped: list[Skipped] = []
    for subject, table in tables.items():
        parsed = list(_parse(name, table, subject))  # all of it: a broken row is told before hours of work
        asked = list(islice((item for item in parsed if isinstance(item, Example)), limit))
        reached = parsed.index(asked[-1]) if limit is not None and len(asked) == limit else len(parsed)
        examples += asked
        skipped += (item for item in parsed[:reached] if isinstance(item, Skipped))
    if not examples:
        raise DataError(f"{name}: none of its rows can be asked; check --data_path and --subjects")
    source = str(data_path) if data_path is not None else next(iter(tables.values())).source
    hashes = {table.source: table.sha256 for table in tables.values() if table.sha256}
    return Loaded(tuple(examples), tuple(skipped), source, hashes)


def _tables(name: str, path: Path | None, subjects: Sequence[str] | None) -> dict[str | None, Table]:
    """The tables to read, by subject (one table, under None, where there are no subjects)."""
    if name == "toy" and path is None:
        path = TOY
    if name not in subjects_of.ALL:
        if path is None:
            return {None: read_hub(*HUB[name], SPLIT)}
        return {None: read_file(one_file(path) if is_folder(path) else path)}
    if path is not None and not is_folder(path):
        return {_subject_of(name, path, subjects): read_file(path)}
    chosen = subjects_of.choose(name, subjects)
    if path is None:
        return {subject: read_hub(HUB[name][0], subject, SPLIT) for subject in chosen}
    return {subject: read_file(file) for subject, file in subject_files(path, chosen).items()}


def _subject_of(name: str, path: Path, subjects: Sequence[str] | None) -> str:
    """The subject a single file is for: its stem."""
    if path.stem not in subjects_of.ALL[name]:
        why = subjects_of.unknown(path.stem, subjects_of.ALL[name], f"subject of {name}")
        raise DataError(f"{path} must be named after the subject of its rows: {why}")
    if subjects is not None and subjects_of.choose(name, subjects) != (path.stem,):
        raise DataError(f"{path} holds {path.stem} alone; give a folder with a file for each of the --subjects")
    return path.stem


def _parse(name: str, table: Table, subject: str | None) -> Iterator[Example | Skipped]:
    """Each row as an Example or Skipped; ids are checked to be unique, as answers are stored under them."""
    seen: dict[str, str] = {}
    for index, (place, row) in enumerate(table.rows):
        where = f"{table.source}, {place}"
        if not isinstance(row, dict):
            raise DataError(f"{where}: a row must be an object with named columns; mend or remove it")
        try:
            item = PARSERS[name](row, index, subject)
        except DataError as error:
            raise DataError(f"{where}: {error}; mend or remove the row") from error
        if item.id in seen:
            raise DataError(f"{where}: its id {item.id!r} stands in {seen[item.id]} already; make ids unique")
        seen[item.id] = place
        yield item
