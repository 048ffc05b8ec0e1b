"""What to write where the models disagree: their distributions become one symbol (Section 3.3; SPEC 4 and 5)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ensemble.combine import SHARPEN_BELOW, add_extensions, arithmetic_mean, geometric_mean
from ensemble.gac import VocabularyUnion
from ensemble.tokens import Symbol
from ensemble.unite import extensions_in, stand_ins, union_of
from safe.config import SafeConfig
from safe.lm import LM, NextToken
from safe.peaks import best, block_maxima


@dataclass(frozen=True)
class Vote:
    """An ensemble over a union of U symbols.

    masses: (M, U), a row per model. probs: (U,), their mean. sharpened: (U,), or None where probs was sharp enough.
    """

    symbols: Sequence[Symbol]
    masses: Tensor
    probs: Tensor
    sharpened: Tensor | None

    @property
    def final(self) -> Tensor:
        return self.probs if self.sharpened is None else self.sharpened

    @property
    def best(self) -> Symbol:
        """The chosen symbol; of equals the one listed first (the drafter's order)."""
        final = self.final[None]
        return self.symbols[int(best(final, block_maxima(final))[1])]


class Voter:
    """Ensembles the next-token distributions of several models, the drafter's first."""

    def __init__(self, models: Sequence[LM], config: SafeConfig):
        self.models, self.config = models, config
        self.weights = torch.tensor(config.weights_for(len(models)))
        self._union: VocabularyUnion | None = None

    @torch.inference_mode()
    def vote(self, rows: Sequence[NextToken]) -> Vote | None:
        """None if no model's most probable ids stand for a symbol: nothing can be compared."""
        return self._gac(rows) if self.config.ensemble_type == "gac" else self._unite(rows)

    def _unite(self, rows: Sequence[NextToken]) -> Vote | None:
        tops = [[row.model.vocabulary.symbols[i] for i in row.top_ids(self.config.top_k)] for row in rows]
        union = union_of(tops)
        if not union:
            return None
        masses = torch.tensor([self._masses_over(union, row) for row in rows])
        probs = arithmetic_mean(masses, self.weights)

        def extensions():
            listed, heads = probs.tolist(), [symbol for symbol in tops[0] if symbol is not None]
            found = extensions_in(union, heads, lambda i: listed[i] > self.config.sharpen_lambda)
            return [(column, torch.tensor(below)) for column, below in found if below]

        return Vote(union, masses, probs, self._sharpen(masses, probs, extensions))

    def _masses_over(self, union: Sequence[Symbol], row: NextToken) -> list[float]:
        """One model's mass of each union symbol, normalised over the union."""
        ids_of = row.model.vocabulary.ids_of
        standing = stand_ins(union, ids_of, row.model.reader.first_piece)
        columns, ids = [], []
        for column, symbol in enumerate(standing):
            if symbol is not None:
                for token in ids_of[symbol]:
                    columns.append(column)
                    ids.append(token)
        masses = [0.0] * len(union)
        for column, prob in zip(columns, row.probs(ids), strict=True):
            masses[column] += prob
        total = sum(masses)
        return [mass / total for mass in masses] if total else masses

    def _gac(self, rows: Sequence[NextToken]) -> Vote:
        if self._union is None:
            self._union = VocabularyUnion([model.vocabulary for model in self.models])
        union = self._union
        masses = union.masses([row.distribution() for row in rows])
        self.weights = self.weights.to(masses.device)  # moved once, on first use
        probs = arithmetic_mean(masses, self.weights)
        extensions = lambda: union.extensions(probs, self.config.sharpen_lambda)  # noqa: E731
        return Vote(union.symbols, masses, probs, self._sharpen(masses, probs, extensions))

    def _sharpen(self, masses: Tensor, probs: Tensor, extensions) -> Tensor | None:
        """SPEC 5, only where no symbol has half the mass: the sharpened distribution, or None."""
        kind = self.config.sharpen_type
        if kind == "none" or float(probs.max()) >= SHARPEN_BELOW:
            return None
        if kind == "heur":
            return add_extensions(probs, extensions())
        product = geometric_mean(masses, self.weights)
        return product if float(product.max()) > 0 else None
