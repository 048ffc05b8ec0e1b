"""The fast path gives the slow twin's ids and verdicts (SPEC 3-6), whatever the batch."""

import warnings
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product
from random import Random

import pytest
import torch

from ensemble.tokens import EOS
from safe import reference
from safe.config import ConfigError, SafeConfig
from safe.decode import generate
from safe.fit import generate_that_fits
from safe.lm import LM, ModelError
from safe.verify import Verdict
from tests.toy_lms import PROMPTS, toy_lm, toy_team
from tests.toy_text import corpus

COMBINATIONS = list(product(("unite", "gac"), ("heur", "geom", "none"), (1, 2, 3, 5, 8)))


def slow(models, question, config):
    """The reference's ids and verdict counts."""
    response = reference.decode(models, question, config)
    count = Counter(response.verdicts)
    return tuple(response.ids), {**{str(v): count[v] for v in Verdict}, "changed": response.changed}


def fast(models, questions, config):
    """The decoder's ids and verdict counts, in order of the questions."""
    for model in models:
        model.reserve(config.batch_size)
    answers = dict(generate(models, questions, config))
    return [(answers[i].token_ids, answers[i].verdicts) for i in range(len(questions))]


@pytest.fixture
def remember(monkeypatch):
    """Many settings ask the slow twin for the same distributions; a forward pass of given ids is computed once."""
    logits, known = reference.logits, {}

    def remembered(model, ids):
        key = (id(model), tuple(ids))
        if key not in known:
            known[key] = logits(model, ids)
        return known[key]

    monkeypatch.setattr(reference, "logits", remembered)


def assert_alike(seed, one, other, config):
    """Two ways to decode give a team the same ids and verdicts.

    In float32 a probability may lie so close to a threshold that rounding, other on every machine, decides on which
    side: then the same weights in float64 have the last word."""
    models = toy_team(seed)
    if one(models) != other(models):
        warnings.warn(f"team {seed}: rounding decided a verdict in {config}", stacklevel=2)
        models = toy_team(seed, torch.float64)
        assert one(models) == other(models), config


@pytest.mark.parametrize("seed", range(300))
def test_fast_equals_slow(seed, remember):
    """300 teams, each with one of the 30 settings."""
    kind, sharpen, gamma = COMBINATIONS[seed % len(COMBINATIONS)]
    schedule = "every" if Random(seed).random() < 0.15 else "safe"
    config = SafeConfig(
        gamma=gamma,
        ensemble_type=kind,
        sharpen_type=sharpen,
        schedule=schedule,
        top_k=(10, 3)[seed % 2],
        max_new_tokens=12,
    )
    assert_fast_is_slow(seed, config)


def assert_fast_is_slow(seed, config):
    question = PROMPTS[seed % len(PROMPTS)]
    one, other = lambda team: fast(team, [question], config), lambda team: [slow(team, question, config)]
    assert_alike(seed, one, other, config)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_fast_equals_slow_in_every_setting(seed, remember):
    """300 teams, each with all of the 30 settings."""
    for kind, sharpen, gamma in COMBINATIONS:
        assert_fast_is_slow(seed, SafeConfig(gamma=gamma, ensemble_type=kind, sharpen_type=sharpen, max_new_tokens=8))


def test_in_float64_rounding_decides_nothing(remember):
    """The last word of the equalities above is itself an equality."""
    for seed in range(12):
        kind, sharpen, gamma = COMBINATIONS[-seed]
        config = SafeConfig(gamma=gamma, ensemble_type=kind, sharpen_type=sharpen, max_new_tokens=12)
        models = toy_team(seed, torch.float64)
        assert fast(models, PROMPTS[:1], config) == [slow(models, PROMPTS[0], config)]


@pytest.mark.parametrize("seed", range(16))
def test_a_batch_changes_nothing(seed):
    """Every row has the ids and verdicts of decoding alone; rows join and leave at different lengths."""
    rng = Random(seed)
    questions = [rng.choice(PROMPTS) + " x" * rng.randint(0, 40) for _ in range(6)]
    config = SafeConfig(
        gamma=rng.choice([1, 2, 3, 5, 8, "auto"]),
        ensemble_type=rng.choice(["unite", "gac"]),
        schedule=rng.choice(["safe", "safe", "every"]),
        max_new_tokens=rng.choice([1, 7, 40]),
    )
    assert_a_batch_changes_nothing(1000 + seed, questions, config)


def assert_a_batch_changes_nothing(seed, questions, config):
    for size in (2, 3, 8):
        batched = replace(config, batch_size=size)
        alone, together = (partial(fast, questions=questions, config=c) for c in (config, batched))
        assert_alike(seed, alone, together, batched)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_batch_changes_nothing_in_long_answers(seed):
    config = SafeConfig(gamma=(2, 5, 8)[seed % 3], ensemble_type=("unite", "gac")[seed % 2], max_new_tokens=200)
    assert_a_batch_changes_nothing(2000 + seed, list(PROMPTS) * 2, config)


def test_the_teams_meet_every_verdict():
    """Otherwise the equalities above would say little."""
    total = Counter()
    for seed in range(40):
        kind, sharpen, gamma = COMBINATIONS[seed % len(COMBINATIONS)]
        config = SafeConfig(gamma=gamma, ensemble_type=kind, sharpen_type=sharpen, max_new_tokens=12)
        total.update(fast(toy_team(seed), [PROMPTS[0]], config)[0][1])
    assert min(total.values()) > 5, total


@pytest.mark.parametrize("kind", ["gpt2", "qwen", "llama2", "gemma", "unigram"])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_one_model_is_plain_greedy(kind, batch_size):
    """SPEC 3: k = 1 equals transformers' generate."""
    model = toy_lm(kind, 1)
    config = SafeConfig(max_new_tokens=30, batch_size=batch_size)
    ends = sorted(model.eos_symbol_ids)
    for question, (ids, verdicts) in zip(PROMPTS, fast([model], PROMPTS, config), strict=True):
        prompt = torch.tensor([model.prompt_ids(question)])
        greedy = model.model.generate(
            prompt, do_sample=False, max_new_tokens=30, eos_token_id=ends, pad_token_id=ends[0]
        )
        assert list(ids) == greedy[0, prompt.shape[1] :].tolist()
        assert not any(verdicts.values())


def test_ensemble_off_is_the_drafter_alone():
    models = toy_team(3)
    off = fast(models, PROMPTS, SafeConfig(ensemble=False, max_new_tokens=20))
    assert off == fast(models[:1], PROMPTS, SafeConfig(max_new_tokens=20))


def reads_what_was_written(model, ids, gamma):
    """Whether the model's tokenization of the first gamma, 2 gamma ... tokens of an answer is these tokens."""
    said = [i for i in ids if i not in model.eos_symbol_ids]
    cuts = {*range(gamma, len(said), gamma), len(said)}
    return all(model.reader.read(model.vocabulary.join(said[:n])).ids == said[:n] for n in cuts)


@pytest.mark.parametrize("kind", ["gpt2", "qwen", "llama2", "gemma", "unigram"])
def test_a_twin_changes_nothing_where_it_reads_what_was_written(kind):
    """With the drafter as its own verifier the answer is plain greedy's, as long as the verifier's tokenization of it
    is the drafter's own ids (a twin that reads other ids is another model)."""
    met = 0
    for seed, question in product(range(4), [*PROMPTS, *corpus("twin", 9)]):
        model = toy_lm(kind, seed)
        twin = LM("twin", model.model, model.vocabulary, model.reader, model.prompt_ids, model.default_eos)
        config = SafeConfig(max_new_tokens=9, gamma=3)
        ((ids, _),) = fast([model], [question], config)
        if reads_what_was_written(model, ids, config.gamma):
            met += 1
            ((twins, verdicts),) = fast([model, twin], [question], config)
            assert twins == ids and verdicts["unanimous"] == len(ids)
    assert met >= 3, met


def test_sliding_window_rolls_back_far_past_its_window():
    """SPEC 6: a Gemma-style model reads 40 tokens, is cut back 33 of them and reads others, as without a cache."""
    model = toy_lm("gemma", 2, window=5)
    rng = Random(0)
    texts = [[rng.randrange(5, len(model.vocabulary) - 5) for _ in range(40)] for _ in range(2)]
    context = model.open(texts[0])
    model.read([context], [[40]])
    context.rewrite(7, texts[1][7:])
    (rows,) = model.read([context], [[20, 39, 40]]).lists()
    assert context.held == 40
    model.close(context)
    ids = texts[0][:7] + texts[1][7:]
    for row, position in zip(rows, (20, 39, 40), strict=True):
        torch.testing.assert_close(row.logits, reference.logits(model, ids[:position]), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("batch_size", [1, 2, 3])
@pytest.mark.parametrize("seed", [1, 4, 9])
def test_what_a_prompt_shares_with_the_last_one_is_read_once(seed, batch_size, monkeypatch):
    """Worked examples before many questions: the ids are those of empty caches, the work is less."""
    models = toy_team(seed)
    questions = [PROMPTS[0] * 30 + f" {n}?" * (n % 3 + 1) for n in range(6)]
    config = SafeConfig(max_new_tokens=9, batch_size=batch_size)
    read = 0

    inner = models[0].model.forward

    def counted(**kwargs):
        nonlocal read
        read += kwargs["input_ids"].numel()
        return inner(**kwargs)

    monkeypatch.setattr(models[0].model, "forward", counted)
    alone = [fast(models, [question], config)[0] for question in questions]
    read_alone, read = read, 0
    assert fast(models, questions, config) == alone
    assert read < read_alone - (6 - batch_size) * 100


@pytest.mark.parametrize("max_new_tokens", [1, 2, 3, 7])
def test_the_answer_is_cut_after_the_verdicts(max_new_tokens):
    """A window is full also where max_new_tokens ends inside it: shorter answers are prefixes of longer ones."""
    models = toy_team(11)
    ((long, _),) = fast(models, PROMPTS[:1], SafeConfig(max_new_tokens=20))
    ((short, verdicts),) = fast(models, PROMPTS[:1], SafeConfig(max_new_tokens=max_new_tokens))
    assert short == long[:max_new_tokens]
    assert sum(verdicts[v] for v in Verdict) == len(short)


def test_answers_count_what_they_cost():
    models = toy_team(5)
    for _, answer in generate(models, PROMPTS, SafeConfig(max_new_tokens=20, trace=True)):
        assert answer.drafted == answer.forward_passes[0] >= len(answer.token_ids) - answer.verdicts["changed"]
        assert len(answer.trace) == len(answer.token_ids)
        assert sum(token.verdict == "ensembled" for token in answer.trace) == answer.verdicts["ensembled"]
        assert all((token.vote is not None) == (token.verdict == "ensembled") for token in answer.trace)
        assert b"".join(token.bytes for token in answer.trace).decode(errors="replace") == answer.text
        ended = models[0].vocabulary.symbols[answer.token_ids[-1]] == EOS
        assert answer.finish_reason == ("eos" if ended else "length")
        assert all(answer.seconds[part] >= 0 for part in ("draft", "verify", "tokenize", "ensemble"))


def test_a_prompt_beyond_the_context_is_an_answer_of_its_own():
    models = toy_team(5)
    (_, long), (_, short) = sorted(generate(models, ["word " * 3000, "Hi"], SafeConfig(max_new_tokens=5)))
    assert long.finish_reason == "context" and long.token_ids == () and short.token_ids


def test_logits_that_are_not_finite_stop_the_run():
    model = toy_lm("gpt2", 3, vocab_pad=2)
    model.model.lm_head.weight.data[4, 0] = float("nan")
    with pytest.raises(ModelError, match="gpt2-3.*not finite"):
        list(generate([model], PROMPTS[:1], SafeConfig(max_new_tokens=5)))
    assert not model.contexts  # the place is free again


@pytest.mark.parametrize(
    "setting",
    [
        {"gamma": 0}, {"gamma": 2.5}, {"max_new_tokens": 0}, {"top_k": 0}, {"batch_size": 0}, {"weights": (1.0, -1.0)},
        {"ensemble_type": "mean"}, {"sharpen_type": "soft"}, {"schedule": "never"}, {"sharpen_lambda": 2},
        {"gac_gate": -1}, {"weights": ()},
    ],
)  # fmt: skip
def test_settings_check_themselves(setting):
    (name,) = setting
    with pytest.raises(ConfigError, match=name):
        SafeConfig(**setting)


def test_weights_are_one_a_model():
    assert SafeConfig(weights=(3, 1)).weights_for(2) == (0.75, 0.25)
    with pytest.raises(ConfigError, match="3 given for 2 models"):
        SafeConfig(weights=(1, 1, 1)).weights_for(2)


def out_of_memory_above(rows: int, model: LM, monkeypatch) -> list[int]:
    """Let forward passes over more rows fail as a full device lets them; returns the rows of every pass."""
    inner, seen = model.model.forward, []

    def limited(**kwargs):
        seen.append(len(kwargs["input_ids"]))
        if seen[-1] > rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return inner(**kwargs)

    monkeypatch.setattr(model.model, "forward", limited)
    return seen


@pytest.mark.parametrize("at", [0, 1])
def test_a_batch_that_does_not_fit_is_halved_and_nothing_is_lost(at, monkeypatch):
    models, questions = toy_team(7), list(PROMPTS) * 3
    config = SafeConfig(max_new_tokens=12)
    alone = fast(models, questions, config)
    rows = out_of_memory_above(2, models[at], monkeypatch)
    fitting = list(generate_that_fits(models, questions, replace(config, batch_size=8)))
    assert len(fitting) == len(questions) and max(rows) > 4
    answers = dict(fitting)
    assert [(answers[i].token_ids, answers[i].verdicts) for i in range(len(questions))] == alone
    assert rows[-1] <= 2


def test_one_answer_that_does_not_fit_stops_the_run(monkeypatch):
    models = toy_team(7)
    out_of_memory_above(0, models[0], monkeypatch)
    with pytest.raises(ModelError, match="out of memory with one answer"):
        list(generate_that_fits(models, PROMPTS, SafeConfig(max_new_tokens=12, batch_size=4)))
    assert not models[0].contexts
