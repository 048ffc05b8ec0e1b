"""How far to draft: `--gamma auto` follows how far drafts survive.

Only counts decide, never a clock, so the same question gives the same ids on every run and in every batch. A token
costs one drafter pass; a cycle costs one pass of every verifier, whose price grows a little with each token it checks.
A short window pays the verifiers too often, a long one drafts what is thrown away.
"""

from dataclasses import dataclass

LONGEST = 16  # tokens
# what is believed before the answer has shown anything: one token in 24 contested, half of them changed
PRIOR_TOKENS = 48
PRIOR_CONTESTED = 2
PRIOR_CHANGED = 1


@dataclass(frozen=True)
class Prices:
    """Costs in drafter passes: of a verifier pass of one token (all verifiers together), and of each further token."""

    verify: float
    verify_token: float


class Lookahead:
    """The window of one answer: a fixed number of tokens, or (`fixed` None) the length whose expected price per kept
    token is the lowest, after what the answer has shown so far."""

    def __init__(self, fixed: int | None, prices: Prices):
        self.fixed, self.prices = fixed, prices
        self.judged = self.contested = self.changed = 0
        self.gamma = self._best() if fixed is None else fixed

    def saw(self, accepted: int, contested: bool, changed: bool) -> None:
        """Learn from one cycle: how many tokens were accepted, and whether one was contested and changed."""
        if self.fixed is None:
            self.judged += accepted + contested
            self.contested += contested
            self.changed += changed
            self.gamma = self._best()

    def _best(self) -> int:
        contested = (self.contested + PRIOR_CONTESTED) / (self.judged + PRIOR_TOKENS)
        changed = (self.changed + PRIOR_CHANGED) / (self.contested + PRIOR_CONTESTED)
        return min(range(1, LONGEST + 1), key=lambda gamma: price_per_token(gamma, contested, changed, self.prices))


def price_per_token(gamma: int, contested: float, changed: float, prices: Prices) -> float:
    """Expected cost of a kept token, in drafter passes, if each token is contested with one probability and then
    changed with another."""
    survive = 1 - contested
    kept = sum(survive**n for n in range(gamma))  # a contested token is kept too, changed or not
    # a change at place n of the window wastes the gamma - n tokens behind it
    wasted = changed * contested * sum(survive ** (n - 1) * (gamma - n) for n in range(1, gamma + 1))
    return 1 + (wasted + prices.verify + prices.verify_token * (gamma - 1)) / kept
