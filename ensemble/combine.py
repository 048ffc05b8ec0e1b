"""Distributions over symbols become one: average, sharpen, pick. Pure functions; nothing is edited in place.

`masses` has one row per model and one column per union symbol; `weights` sums to 1.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

SHARPEN_BELOW = 0.5  # Section 3.3: a distribution whose best symbol has less is "too smooth"


def arithmetic_mean(masses: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean over the models: masses (M, U), weights (M,) -> (U,)."""
    return weights @ masses


def geometric_mean(masses: Tensor, weights: Tensor) -> Tensor:
    """Weighted geometric mean over the models: masses (M, U), weights (M,) -> (U,); 0 where any model gives 0."""
    return torch.exp(weights @ torch.log(masses))


def add_extensions(probs: Tensor, candidates: Iterable[tuple[int, Tensor]]) -> Tensor:
    """Heuristic sharpening: a candidate takes over the mass of the symbols that begin with it (probs (U,) -> (U,)).

    candidates: (column of a candidate h, columns of the other symbols that start with h). All sums are of the
    unsharpened probs, so the order of the candidates does not matter.
    """
    sharpened = probs.clone()
    for column, extensions in candidates:
        sharpened[column] += probs.index_select(0, extensions).sum()
    return sharpened


def is_blank(symbol: bytes) -> bool:
    """Whether a symbol is only white space (bytes that are no text are not)."""
    try:
        return symbol.decode().isspace()
    except UnicodeDecodeError:
        return False
