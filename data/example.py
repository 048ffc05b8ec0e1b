"""What a loaded benchmark is made of. No file is read here."""

from collections.abc import Mapping
from dataclasses import dataclass, field


class DataError(ValueError):
    """The user's data cannot be used: one line that says where, what is wrong and what to do."""


@dataclass(frozen=True)
class Example:
    """One question to ask, with the answer that counts as right."""

    id: str  # unique in a run and stable: skipping a row never renumbers the others
    question: str
    gold: str  # gsm8k: the text after ####; letter tasks: the letter by position; bbh: as in the dataset
    choices: tuple[str, ...] = ()  # option texts by position (arc, mmlu-redux)
    subject: str | None = None  # bbh task or mmlu-redux subject
    repaired: bool = False  # mmlu-redux: the label was wrong and is mended; not part of the headline


@dataclass(frozen=True)
class Skipped:
    """A row that is not asked, and why."""

    id: str
    reason: str


@dataclass(frozen=True)
class Loaded:
    """The questions of a run in their order, the rows left out before the last of them, and their origin."""

    examples: tuple[Example, ...]
    skipped: tuple[Skipped, ...]
    source: str  # the path as given, or the Hub id with its split (and commit, where it was reached)
    sha256: Mapping[str, str] = field(default_factory=dict)  # of each local file that was read
