"""Experiment trackers, through accelerate's (`--report_to`; off by default)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from accelerate.utils import is_tensorboard_available, is_wandb_available

from eval.report import Tally
from safe.config import ConfigError

AVAILABLE = {"tensorboard": is_tensorboard_available, "wandb": is_wandb_available}


def check_tracker(kind: str | None) -> None:
    """Raises ConfigError if the tracker's package is not installed."""
    if kind is not None and not AVAILABLE[kind]():
        raise ConfigError(f"--report_to {kind} needs the package {kind}: pip install {kind}")


@contextmanager
def tracker(kind: str | None, folder: Path, settings: Mapping) -> Iterator[Callable[[Tally], None] | None]:
    """A function that logs what a run has come to so far: a step a question."""
    if kind is None:
        yield None
        return
    from accelerate import Accelerator

    accelerator = Accelerator(log_with=kind, project_dir=str(folder), cpu=True)
    plain = {key: value for key, value in settings.items() if isinstance(value, (int, float, str, bool))}
    accelerator.init_trackers("safe", config=plain)

    def log(tally: Tally) -> None:
        values = {"accuracy": tally.accuracy, "ensemble_rate": tally.ensemble_rate, "tokens": tally.tokens}
        values |= {"unanswered": tally.unanswered, "tokens_per_second": tally.tokens_per_second}
        known = {name: value for name, value in values.items() if value is not None}
        accelerator.log(known, step=tally.questions + tally.repaired)

    try:
        yield log
    finally:
        accelerator.end_training()
