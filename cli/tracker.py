"""Experiment trackers, through accelerate's (`--report_to`; off by default)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from accelerate import Accelerator
from accelerate.utils import is_tensorboard_available, is_wandb_available

from safe.config import ConfigError

AVAILABLE = {"tensorboard": is_tensorboard_available, "wandb": is_wandb_available}


def check_tracker(kind: str | None) -> None:
    """Raises ConfigError if the tracker's package is not installed."""
    if kind is not None and not AVAILABLE[kind]():
        raise ConfigError(f"--report_to {kind} needs the package {kind}: pip install {kind}")


@contextmanager
def tracker(kind: str | None, folder: Path, settings: dict) -> Iterator[Callable[[dict], None]]:
    """A function that logs a prediction's line: running accuracy, tokens, ensembled tokens, seconds."""
    if kind is None:
        yield lambda line: None
        return
    accelerator = Accelerator(log_with=kind, project_dir=str(folder), cpu=True)
    plain = {key: value for key, value in settings.items() if isinstance(value, (int, float, str, bool))}
    accelerator.init_trackers("safe", config=plain)
    seen = {"n": 0, "correct": 0}

    def log(line: dict) -> None:
        seen["n"] += 1
        seen["correct"] += line["correct"]
        values = {"accuracy": seen["correct"] / seen["n"], "tokens": line["tokens"], "seconds": line["seconds"]}
        accelerator.log(values | {"ensembled": line["verdicts"]["ensembled"]}, step=seen["n"])

    try:
        yield log
    finally:
        accelerator.end_training()
