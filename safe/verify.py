"""Where to ensemble: the verdict on one drafted token (Section 3.2, Algorithm 1; SPEC 3). Pure.

The law behind "unanimous" and "confident": wherever a_v and t_j are the same symbol, the unsharpened ensemble would
have picked t_j, so skipping it changes nothing. (A model whose most probable id is not its most probable symbol, ids
that share bytes or several EOS ids adding up to more, is the exception.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ensemble.tokens import EOS, Symbol
from safe.lm import NextToken
from safe.reader import Reading

CONFIDENT_ABOVE = 0.5  # Eq. 2


class Verdict(StrEnum):
    """Why a token of the response is what it is."""

    OOV = "oov"
    UNANIMOUS = "unanimous"
    CONFIDENT = "confident"
    GATED = "gated"
    ENSEMBLED = "ensembled"


@dataclass(frozen=True)
class Drafted:
    """A token the drafter proposes, and the distribution it is the best of."""

    token: int
    symbol: Symbol | None
    after: NextToken

    @property
    def bytes(self) -> bytes:
        return self.symbol if isinstance(self.symbol, bytes) else b""


@dataclass(frozen=True)
class View:
    """What one verifier has where a drafted token starts: its own token there, and the distribution before it."""

    own: Symbol | None
    after: NextToken

    @property
    def agrees(self) -> bool:
        return self.own is not None and self.after.best_symbol == self.own


def shared_starts(window: Sequence[Drafted], offset: int, readings: Sequence[Reading]) -> dict[int, list[int]]:
    """The drafted tokens that start where a token of every verifier starts (Eq. 1), with those tokens' indices.

    offset: of the window in the response, in bytes. EOS starts at the end of the text.
    Returns {place in the window: index per verifier}.
    """
    shared = {}
    for j, drafted in enumerate(window):
        if drafted.symbol == EOS:
            if all(reading.complete for reading in readings):
                shared[j] = [reading.end for reading in readings]
        elif drafted.symbol is not None:
            indices = [reading.starts.get(offset) for reading in readings]
            if None not in indices:
                shared[j] = indices
        offset += len(drafted.bytes)
    return shared


def judge(
    drafted: Drafted, views: Sequence[View] | None, weights: Sequence[float], gate: float | None
) -> Verdict | None:
    """The verdict on a drafted token; None: it must be ensembled.

    views: one per verifier, None where the tokenizations do not line up. gate: GaC's threshold, None for UniTE.
    """
    if views is None:
        return Verdict.OOV
    if all(view.agrees for view in views):
        return Verdict.UNANIMOUS
    own = drafted.after.prob(drafted.symbol)
    theirs = [0.0 if view.own is None else view.after.prob(view.own) for view in views]
    if sum(w * p for w, p in zip(weights, [own, *theirs], strict=True)) > CONFIDENT_ABOVE:
        return Verdict.CONFIDENT
    if gate is not None and own >= gate:
        return Verdict.GATED
    return None
