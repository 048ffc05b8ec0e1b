"""Finished (or growing) output folders, read for the tables, figures and pages made of them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from statsmodels.stats.proportion import proportion_confint

from eval.records import OutputError, OutputFolder

PARTS = ("draft", "verify", "tokenize", "ensemble")
METHODS = {"unite": "UniTE", "gac": "GaC"}

# settings that make two runs of one method two rows of a table, in the order they are shown
DISTINGUISHING = (
    "sharpen_type", "sharpen_lambda", "gamma", "top_k", "gac_gate", "weights", "max_new_tokens", "batch_size",
    "dtype", "device", "attn_implementation", "quantization", "limit",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One output folder. predictions: its lines by id, in order. repaired: likewise, the lines whose gold was repaired;
    they count in a figure of their own, not in the accuracy."""

    folder: Path
    config: dict
    predictions: dict[str, dict]
    repaired: dict[str, dict]

    @property
    def dataset(self) -> str:
        return self.config["data_name"]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that took part, the drafter first."""
        names = tuple(self.config["models"])
        return names if self.config["ensemble"] else names[:1]

    @property
    def is_single(self) -> bool:
        return len(self.models) == 1

    @property
    def method(self) -> str:
        """The method as the paper's tables name it."""
        if self.is_single:
            return "single"
        name = METHODS[self.config["ensemble_type"]]
        return f"{name}+SAFE" if self.config["schedule"] == "safe" else name

    @cached_property
    def correct(self) -> int:
        return sum(line["correct"] for line in self.predictions.values())

    @cached_property
    def tokens(self) -> int:
        return sum(line["tokens"] for line in self.predictions.values())

    @property
    def accuracy(self) -> float:
        return self.correct / len(self.predictions)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% Wilson interval of the accuracy, 0..1."""
        low, high = proportion_confint(self.correct, len(self.predictions), method="wilson")
        return float(low), float(high)

    @property
    def ensemble_rate(self) -> float | None:
        """E/T, 0..1; None where nothing could be ensembled."""
        if self.is_single or not self.tokens:
            return None
        return sum(line["verdicts"]["ensembled"] for line in self.predictions.values()) / self.tokens

    @cached_property
    def seconds(self) -> float:
        return sum(line["seconds"] for line in self.predictions.values())

    @property
    def tokens_per_second(self) -> float | None:
        return self.tokens / self.seconds if self.seconds else None

    def trace(self) -> Iterator[dict]:
        """The lines of trace.jsonl, one at a time; none without a trace. A last line that was cut off while it was
        written is left out."""
        path = self.folder / "trace.jsonl"
        if not path.exists():
            return
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.endswith("\n"))


def read_run(folder: Path | str) -> Run:
    """The run in an output folder. Raises OutputError if the folder holds none."""
    folder = Path(folder)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise OutputError(f"{folder} is no output folder of run_safe.py or run_safe_mmlu.py: {error}") from error
    lines = list(OutputFolder(folder).lines())
    predictions = {line["id"]: line for line in lines if not line.get("repaired")}
    if not lines:
        raise OutputError(f"{folder} has no predictions yet; run its command again to go on")
    repaired = {line["id"]: line for line in lines if line.get("repaired")}
    return Run(folder, config, predictions, repaired)


def short_names(runs: Iterable[Run]) -> dict[str, str]:
    """Model name -> its last path component, where that still tells the models apart."""
    names = {name for run in runs for name in run.models}
    last = {name: name.rstrip("/").rsplit("/", 1)[-1] for name in names}
    seen = list(last.values())
    return {name: short if seen.count(short) == 1 else name for name, short in last.items()}


def labels(runs: Sequence[Run], but: str | None = None) -> list[str]:
    """A method label a run; runs that would share one on the same data get the settings that tell them apart. but: a
    setting that is left out all the same."""
    told = {(run.models, run.method): _told_apart_by(run, runs, but) for run in runs}
    return [
        ", ".join([run.method, *(f"{key} {run.config.get(key)}" for key in told[run.models, run.method])])
        for run in runs
    ]


def _told_apart_by(run: Run, runs: Sequence[Run], but: str | None) -> list[str]:
    """The settings in which runs of the same models and method on one dataset differ."""
    same = [other for other in runs if (other.models, other.method) == (run.models, run.method)]
    pairs = [(a, b) for a in same for b in same if a.dataset == b.dataset]
    differ = [key for key in DISTINGUISHING if any(a.config.get(key) != b.config.get(key) for a, b in pairs)]
    return [key for key in differ if key != but]
