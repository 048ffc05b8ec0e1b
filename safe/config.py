"""The settings of a run, checked where they are made; every default is written here and nowhere else (SPEC 8)."""

from dataclasses import dataclass
from typing import Literal


class ConfigError(ValueError):
    """A setting that makes no sense; the message says which and what is allowed."""


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name} must be {' or '.join(allowed)}, got {value!r}")


def _whole_number(name: str, value: object, minimum: int) -> None:
    if type(value) is not int or value < minimum:
        raise ConfigError(f"{name} must be a whole number of at least {minimum}, got {value!r}")


@dataclass(frozen=True)
class SafeConfig:
    """How an answer is decoded. Raises ConfigError for a value that makes no sense.

    gamma: tokens in a window (the lookahead), or "auto" to follow how far drafts survive.
    ensemble: False decodes greedily with the drafter alone.
    schedule: "safe" ensembles where SAFE says so; "every" is the baseline that ensembles at every token.
    sharpen_lambda, gac_gate: probabilities, 0..1. weights: one per model, any scale; None: equal.
    batch_size: answers in flight at the same time.
    """

    gamma: int | Literal["auto"] = 5
    ensemble: bool = True
    ensemble_type: Literal["unite", "gac"] = "unite"
    sharpen_type: Literal["heur", "geom", "none"] = "heur"
    schedule: Literal["safe", "every"] = "safe"
    max_new_tokens: int = 2048
    top_k: int = 10
    sharpen_lambda: float = 0.1
    gac_gate: float = 0.5
    weights: tuple[float, ...] | None = None
    trace: bool = False
    batch_size: int = 1

    def __post_init__(self):
        _one_of("ensemble_type", self.ensemble_type, ("unite", "gac"))
        _one_of("sharpen_type", self.sharpen_type, ("heur", "geom", "none"))
        _one_of("schedule", self.schedule, ("safe", "every"))
        if self.gamma != "auto":
            _whole_number("gamma", self.gamma, 1)
        _whole_number("max_new_tokens", self.max_new_tokens, 1)
        _whole_number("top_k", self.top_k, 1)
        _whole_number("batch_size", self.batch_size, 1)
        for name in ("sharpen_lambda", "gac_gate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be a probability between 0 and 1, got {getattr(self, name)!r}")
        if self.weights is not None and (not self.weights or any(not 0 < w < float("inf") for w in self.weights)):
            raise ConfigError(f"weights must be positive numbers, got {self.weights!r}")

    def weights_for(self, n_models: int) -> tuple[float, ...]:
        """One weight per model, summing to 1. Raises ConfigError if their number is another."""
        weights = self.weights or (1.0,) * n_models
        if len(weights) != n_models:
            raise ConfigError(f"weights: {len(weights)} given for {n_models} models; give one weight for each model")
        return tuple(weight / sum(weights) for weight in weights)
