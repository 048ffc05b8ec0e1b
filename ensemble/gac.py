"""GaC: ensembling over the union of all vocabularies (arXiv 2406.12585; SPEC 4)."""

from bisect import bisect_left
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ensemble.combine import is_blank
from ensemble.tokens import Symbol, Vocabulary


class VocabularyUnion:
    """All symbols of several vocabularies, each once; the drafter's (the first's) come first, in order of their ids.

    Built once. A vocabulary's ids are added into the columns of the union by index, so that no matrix of
    vocabulary by union is ever made.
    """

    def __init__(self, vocabularies: Sequence[Vocabulary]):
        columns: dict[Symbol, int] = {}
        for vocabulary in vocabularies:
            for symbol in vocabulary.symbols:
                if symbol is not None:
                    columns.setdefault(symbol, len(columns))
        self.symbols: list[Symbol] = list(columns)
        self.n_drafter = sum(symbol in vocabularies[0] for symbol in columns)
        # ids without a symbol go to one column past the end, which is cut off
        self.columns_of = [
            torch.tensor([columns.get(symbol, len(columns)) for symbol in vocabulary.symbols])
            for vocabulary in vocabularies
        ]
        texts = sorted((symbol, i) for i, symbol in enumerate(self.symbols) if isinstance(symbol, bytes))
        self._sorted = [symbol for symbol, _ in texts]
        self._order = torch.tensor([i for _, i in texts])

    def masses(self, probs: Sequence[Tensor]) -> Tensor:
        """Each model's probabilities (V_m,) as rows over the union: (M, U); symbols a model lacks get 0."""
        device = probs[0].device
        masses = torch.zeros(len(probs), len(self.symbols) + 1, device=device)
        for i, row in enumerate(probs):
            self.columns_of[i] = self.columns_of[i].to(device)  # moved once, on first use
            # index_add_, by its faster name
            masses[i].scatter_add_(0, self.columns_of[i], row.to(device))
        return masses[:, :-1]

    def extensions(self, probs: Tensor, threshold: float) -> list[tuple[int, Tensor]]:
        """For heuristic sharpening: the drafter's symbols above the threshold that are not only white space, each
        with the columns of the other symbols that start with it."""
        probable = torch.nonzero(probs[: self.n_drafter] > threshold).flatten().tolist()
        heads = [(column, self.symbols[column]) for column in probable]
        return [
            (c, self._below(c, head)) for c, head in heads if isinstance(head, bytes) and not is_blank(head)
        ]

    def _below(self, column: int, head: bytes) -> Tensor:
        start = bisect_left(self._sorted, head)
        stop = bisect_left(self._sorted, True, lo=start, key=_after(head))
        columns = self._order[start:stop]
        return columns[columns != column]


def _after(head: bytes) -> Callable[[bytes], bool]:
    """False for what starts with head, True for what sorts behind all of it."""
    return lambda symbol: not symbol.startswith(head)
