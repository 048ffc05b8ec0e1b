"""Ensembling and sharpening against brute force, and the law that makes skipping safe."""

import random
from collections import defaultdict

import pytest
import torch

from ensemble.combine import add_extensions, arithmetic_mean, geometric_mean, is_blank
from ensemble.gac import VocabularyUnion
from ensemble.tokens import EOS, Vocabulary
from ensemble.unite import stand_ins, union_of
from safe.config import SafeConfig
from safe.lm import NextToken
from safe.peaks import best, block_maxima, top_k
from safe.verify import Drafted, Verdict, View, judge
from safe.vote import Voter


class FakeModel:
    """A vocabulary over the letters a, b and the space, and a reader that takes the longest piece first."""

    device = torch.device("cpu")

    def __init__(self, rng: random.Random, name: str):
        pieces = {b"a", b"b", b" "}
        while len(pieces) < 12:
            pieces.add(bytes(rng.choices(b"ab ", k=rng.randint(1, 4))))
        symbols = [*rng.sample(sorted(pieces), len(pieces)), EOS, None, rng.choice([b"a", EOS, b"b"])]
        self.vocabulary = Vocabulary(name, tuple(symbols))
        self.reader = self

    def first_piece(self, symbol):
        starts = [
            piece for piece in self.vocabulary.ids_of if symbol.startswith(piece if piece != EOS else b"\xff")
        ]
        return max(starts, key=len)

    def index(self, ids):
        return torch.tensor(ids)

    def row(self, rng: random.Random, scale: float) -> NextToken:
        logits = torch.tensor([rng.gauss(0, scale) for _ in self.vocabulary.symbols])
        return NextToken(self, logits, int(logits.argmax()))

    def dist(self, row: NextToken) -> dict:
        probs = defaultdict(float)
        for symbol, p in zip(
            self.vocabulary.symbols, torch.softmax(row.logits.double(), 0).tolist(), strict=True
        ):
            probs[symbol] += p
        return probs


def fakes(seed: int, scale: float = 2.0):
    rng = random.Random(seed)
    models = [FakeModel(rng, f"m{i}") for i in range(rng.choice([2, 3]))]
    return rng, models, [model.row(rng, scale) for model in models]


def brute_masses(kind, models, rows, k):
    """SPEC 4 word for word, in double precision."""
    if kind == "gac":
        union = list(dict.fromkeys(s for m in models for s in m.vocabulary.symbols if s is not None))
        return union, [[m.dist(r)[u] for u in union] for m, r in zip(models, rows, strict=True)]
    union = []
    for model, row in zip(models, rows, strict=True):
        for i in sorted(range(len(row.logits)), key=lambda i: -row.logits[i])[:k]:
            symbol = model.vocabulary.symbols[i]
            if symbol is not None and symbol not in union:
                union.append(symbol)
    masses = []
    for model, row in zip(models, rows, strict=True):
        dist, counted, mass = model.dist(row), set(), {}
        for u in [u for u in union if u in model.vocabulary] + [
            u for u in union if u not in model.vocabulary
        ]:
            symbol = u if u in model.vocabulary else model.first_piece(u)
            mass[u] = 0.0 if symbol in counted else dist[symbol]
            counted.add(symbol)
        masses.append([mass[u] / sum(mass.values()) for u in union])
    return union, masses


@pytest.mark.parametrize("kind", ["unite", "gac"])
@pytest.mark.parametrize("seed", range(60))
def test_masses_are_those_of_the_definition(seed, kind):
    _, models, rows = fakes(seed)
    vote = Voter(models, SafeConfig(ensemble_type=kind, top_k=4)).vote(rows)
    union, masses = brute_masses(kind, models, rows, 4)
    assert list(vote.symbols) == union
    torch.testing.assert_close(
        vote.masses.double(), torch.tensor(masses, dtype=torch.double), atol=1e-6, rtol=1e-4
    )
    torch.testing.assert_close(vote.probs, vote.masses.mean(0))
    if kind == "unite":
        torch.testing.assert_close(vote.masses.sum(1), torch.ones(len(models)))


@pytest.mark.parametrize("sharpen", ["heur", "geom", "none"])
@pytest.mark.parametrize("kind", ["unite", "gac"])
@pytest.mark.parametrize("seed", range(40))
def test_sharpening_is_that_of_the_definition(seed, kind, sharpen):
    _, models, rows = fakes(seed, scale=1.0)
    vote = Voter(models, SafeConfig(ensemble_type=kind, sharpen_type=sharpen, top_k=4)).vote(rows)
    union, mean = list(vote.symbols), vote.probs.tolist()
    if max(mean) >= 0.5 or sharpen == "none":
        assert vote.sharpened is None
    elif sharpen == "geom":
        product = vote.masses.prod(0) ** (1 / len(models))
        assert (
            vote.sharpened is None
            if not product.any()
            else torch.allclose(vote.sharpened, product, atol=1e-6)
        )
    else:
        tops = [models[0].vocabulary.symbols[i] for i in rows[0].top_ids(4)]
        heads = set(tops if kind == "unite" else models[0].vocabulary.symbols) - {EOS, None}
        expected = dict(zip(union, mean, strict=True))
        for h in heads:
            if mean[union.index(h)] > 0.1 and h.strip():
                expected[h] += sum(
                    p for u, p in zip(union, mean, strict=True) if u not in (h, EOS) and u.startswith(h)
                )
        torch.testing.assert_close(vote.sharpened, torch.tensor([expected[u] for u in union]))


@pytest.mark.parametrize("kind", ["unite", "gac"])
@pytest.mark.parametrize("seed", range(400))
def test_an_accepted_token_is_the_one_the_unsharpened_ensemble_picks(seed, kind):
    """SPEC 3: wherever a_v and t_j are the same symbol, and each model's best id is its best symbol."""
    rng, models, rows = fakes(seed, scale=rng_scale(seed))
    if any(max(dist := m.dist(r), key=dist.get) != r.best_symbol for m, r in zip(models, rows, strict=True)):
        rows = [m.row(rng, 6.0) for m in models]
    drafted = Drafted(rows[0].best, rows[0].best_symbol, rows[0])
    if drafted.symbol is None or any(drafted.symbol not in m.vocabulary for m in models):
        drafted = Drafted(0, b"a", rows[0])
    views = [View(drafted.symbol, row) for row in rows[1:]]
    verdict = judge(drafted, views, [1 / len(models)] * len(models), None)
    sums_decide = any(
        max(dist := m.dist(r), key=dist.get) != r.best_symbol for m, r in zip(models, rows, strict=True)
    )
    if verdict == Verdict.UNANIMOUS and (sums_decide or rows[0].best_symbol != drafted.symbol):
        return
    if verdict in (Verdict.UNANIMOUS, Verdict.CONFIDENT):
        vote = Voter(models, SafeConfig(ensemble_type=kind, sharpen_type="none", top_k=4)).vote(rows)
        assert vote.best == drafted.symbol


def rng_scale(seed: int) -> float:
    return (1.0, 3.0, 6.0)[seed % 3]


def test_the_law_is_not_tested_on_nothing():
    """The seeds above meet both verdicts, and contested tokens too."""
    met = set()
    for seed in range(400):
        _, models, rows = fakes(seed, rng_scale(seed))
        drafted = Drafted(rows[0].best, rows[0].best_symbol, rows[0])
        if drafted.symbol is not None and all(drafted.symbol in m.vocabulary for m in models):
            views = [View(drafted.symbol, row) for row in rows[1:]]
            met.add(judge(drafted, views, [1 / len(models)] * len(models), None))
    assert met == {Verdict.UNANIMOUS, Verdict.CONFIDENT, None}


def test_mass_is_counted_once():
    """`abb` and `aba` both begin with this model's `ab`, which is itself in the union: neither gets its mass again."""
    vocabulary = Vocabulary("v", (b"ab", b"a", b"b"))
    assert stand_ins([b"ab", b"abb", b"aba"], vocabulary, lambda u: u[:2]) == [b"ab", None, None]
    assert stand_ins([b"abb", b"aba", b"a"], vocabulary, lambda u: u[:2]) == [b"ab", None, b"a"]
    assert stand_ins([b"\xff"], vocabulary, lambda u: None) == [None]


def test_union_keeps_the_drafters_order():
    assert union_of([[b"b", EOS, None], [b"a", b"b"], [EOS, b"c"]]) == [b"b", EOS, b"a", b"c"]


def test_gac_adds_up_ids_that_share_bytes():
    union = VocabularyUnion([Vocabulary("x", (b"a", EOS, b"a", None, EOS)), Vocabulary("y", (b"c", b"a"))])
    assert union.symbols == [b"a", EOS, b"c"] and union.n_drafter == 2
    masses = union.masses([torch.tensor([0.1, 0.2, 0.3, 0.15, 0.25]), torch.tensor([0.6, 0.4])])
    torch.testing.assert_close(masses, torch.tensor([[0.4, 0.45, 0.0], [0.4, 0.0, 0.6]]))


def test_combine_edits_nothing():
    masses, weights = torch.tensor([[0.2, 0.8, 0.0], [0.6, 0.2, 0.2]]), torch.tensor([0.75, 0.25])
    mean = arithmetic_mean(masses, weights)
    torch.testing.assert_close(mean, torch.tensor([0.3, 0.65, 0.05]))
    torch.testing.assert_close(
        geometric_mean(masses, weights), torch.tensor([0.2**0.75 * 0.6**0.25, 0.8**0.75 * 0.2**0.25, 0.0])
    )
    sharpened = add_extensions(mean, [(0, torch.tensor([1, 2])), (2, torch.tensor([0]))])
    torch.testing.assert_close(sharpened, torch.tensor([1.0, 0.65, 0.35]))
    torch.testing.assert_close(mean, torch.tensor([0.3, 0.65, 0.05]))


@pytest.mark.parametrize(
    "symbol, blank",
    [(b" ", True), (b"\n\t ", True), (b"\xe3\x80\x80", True), (b" a", False), (b"\xe3", False)],
)
def test_blank(symbol, blank):
    assert is_blank(symbol) is blank


@pytest.mark.parametrize("seed", range(20))
def test_the_highest_are_found_through_blocks(seed):
    n, size = 1 + seed % 3, [20_000 + 37 * seed, 80 * 256, 500][seed % 3]
    logits = torch.randn(n, size, generator=torch.Generator().manual_seed(seed))
    maxima = block_maxima(logits)
    assert (maxima is None) == (size == 500)
    for row, logit in enumerate(logits):
        values, ids = top_k(logit, 10, None if maxima is None else maxima[row])
        expected = torch.topk(logit, 10)
        assert values == expected.values.tolist() and ids == expected.indices.tolist()
    equals = logits.round()  # many are the highest; the lowest id counts
    values, ids = best(equals, block_maxima(equals))
    assert torch.equal(values, equals.amax(-1)) and torch.equal(ids, equals.argmax(-1))


@pytest.mark.parametrize("at", [0, 300, 20_000, 20_099])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_logit_that_is_not_finite_is_the_highest(at, bad):
    logits = torch.zeros(2, 20_100)
    logits[1, at] = bad
    values, _ = best(logits, block_maxima(logits))
    assert values.isfinite().tolist() == [True, False]
