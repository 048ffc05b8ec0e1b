"""What is kept of every token when a trace is asked for (SPEC 11)."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from ensemble.tokens import EOS, Symbol
from safe.lm import NextToken
from safe.verify import Drafted
from safe.vote import Vote

SHOWN = 10  # candidates of a distribution

Candidates = tuple[tuple[str | None, float], ...]
"""(text, probability) by falling probability; text None is the end of the answer."""


@dataclass(frozen=True)
class VoteTrace:
    """One ensembled token: what was drafted, every model's probability of it and best candidates, and the ensemble
    before and (where it was too smooth) after sharpening."""

    drafted: str | None
    models: tuple[tuple[float, Candidates], ...]
    ensemble: Candidates
    sharpened: Candidates | None


@dataclass(frozen=True)
class TokenTrace:
    """One token of the response."""

    id: int
    bytes: bytes
    verdict: str | None
    changed: bool
    vote: VoteTrace | None

    def as_json(self) -> dict:
        """The token as it stands in trace.jsonl."""
        line = {
            "id": self.id,
            "bytes": self.bytes.hex(),
            "text": readable(self.bytes),
            "verdict": self.verdict,
        }
        line["changed"] = self.changed
        if self.vote is not None:
            models = [{"probability": probability, "candidates": shown} for probability, shown in self.vote.models]
            line |= {"drafted": self.vote.drafted, "models": models}
            line |= {"ensemble": self.vote.ensemble, "sharpened": self.vote.sharpened}
        return line


def readable(symbol: Symbol | None) -> str | None:
    """A symbol as text; bytes that are no UTF-8 as escapes, EOS as None."""
    return symbol.decode(errors="backslashreplace") if isinstance(symbol, bytes) else None


def trace_vote(drafted: Drafted, rows: Sequence[NextToken], vote: Vote) -> VoteTrace:
    """The record of one vote."""
    models = tuple((row.prob(drafted.symbol) if drafted.symbol else 0.0, _candidates(row)) for row in rows)
    sharpened = None if vote.sharpened is None else _best(vote, vote.sharpened)
    return VoteTrace(readable(drafted.symbol), models, _best(vote, vote.probs), sharpened)


def _candidates(row: NextToken) -> Candidates:
    ids = row.top_ids(SHOWN)
    probs = row.probs(ids)
    symbols = [row.model.vocabulary.symbols[token] for token in ids]
    return tuple((readable(s), p) for s, p in zip(symbols, probs, strict=True) if s == EOS or isinstance(s, bytes))


def _best(vote: Vote, probs: Tensor) -> Candidates:
    values, columns = probs.topk(min(SHOWN, len(probs)))
    return tuple(
        (readable(vote.symbols[c]), p) for p, c in zip(values.tolist(), columns.tolist(), strict=True) if p > 0
    )
