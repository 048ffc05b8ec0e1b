"""Statistics of two runs on the same questions, and of many comparisons at once. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

RESAMPLES = 9999
SEED = 0


@dataclass(frozen=True)
class Paired:
    """Run B against run A on the same questions.

    n: shared questions. only_a, only_b: questions that only A, only B answered correctly. difference: accuracy of B
    minus accuracy of A, -1..1. interval: its 95% bootstrap interval; None where no question tells the runs apart, or
    there is but one: resampling such questions says nothing. p: of the exact McNemar test.
    """

    n: int
    only_a: int
    only_b: int
    difference: float
    interval: tuple[float, float] | None
    p: float


def paired(a: Sequence[bool], b: Sequence[bool]) -> Paired:
    """Compare the marks of two runs, question by question: a and b have n > 0 entries each, in the same order."""
    assert len(a) == len(b) > 0, (len(a), len(b))
    a, b = np.asarray(a, dtype=bool), np.asarray(b, dtype=bool)
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    interval = _bootstrap(a, b) if only_a + only_b and len(a) > 1 else None
    return Paired(len(a), only_a, only_b, (only_b - only_a) / len(a), interval, mcnemar(only_a, only_b))


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided McNemar test: of the questions that tell the runs apart, is each side's half a coin's?"""
    discordant = only_a + only_b
    return float(stats.binomtest(only_a, discordant).pvalue) if discordant else 1.0


def _bootstrap(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    def difference(a, b, axis):
        return b.mean(axis=axis) - a.mean(axis=axis)

    marks = (a.astype(float), b.astype(float))
    found = stats.bootstrap(
        marks, difference, paired=True, vectorized=True, n_resamples=RESAMPLES, batch=500, method="percentile",
        rng=np.random.default_rng(SEED),
    )  # fmt: skip
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected for their number (Holm): the chance that any of them is a false alarm stays below each."""
    return [float(p) for p in multipletests(p_values, method="holm")[1]] if p_values else []
