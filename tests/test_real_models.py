"""The two small real models: the fast path gives the slow twin's ids, alone and in a batch (SPEC 3-6)."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
import torch

from safe import reference
from safe.config import SafeConfig
from safe.decode import generate
from safe.loading import LoadOptions, load_models
from safe.reader import Transcript
from safe.verify import Verdict
from tests.toy_text import random_text

pytestmark = pytest.mark.real
QUESTIONS = ("What is 17 + 25? Answer briefly.", "Name three colours of the rainbow, with accents: né, 漢字.")


@pytest.fixture(scope="module")
def pair(small_models):
    """smollm2 drafts, gemma3 verifies."""
    paths = [str(small_models / name) for name in ("smollm2", "gemma3")]
    return load_models(paths, [LoadOptions(dtype="float32", device="cpu")] * 2)


def fast(models, config, questions=QUESTIONS):
    for model in models:
        model.reserve(config.batch_size)
    return dict(generate(models, questions, config))


@pytest.mark.parametrize(
    "setting", [{}, {"ensemble_type": "gac"}, {"schedule": "every"}, {"gamma": 3, "sharpen_type": "geom"}]
)
def test_fast_equals_slow(pair, setting):
    config = SafeConfig(max_new_tokens=10, **setting)
    alone, together = fast(pair, config), fast(pair, replace(config, batch_size=2))
    slow = reference.decode(pair, QUESTIONS[0], config)
    count = Counter(slow.verdicts)
    assert list(alone[0].token_ids) == slow.ids
    assert alone[0].verdicts == {**{str(v): count[v] for v in Verdict}, "changed": slow.changed}
    for i in range(2):
        assert together[i].token_ids == alone[i].token_ids and together[i].verdicts == alone[i].verdicts


def test_one_model_is_plain_greedy(pair):
    drafter = pair[0]
    config = SafeConfig(max_new_tokens=24)
    alone = fast([drafter], config)
    prompt = torch.tensor([drafter.prompt_ids(QUESTIONS[0])])
    greedy = drafter.model.generate(prompt, do_sample=False, max_new_tokens=24, attention_mask=torch.ones_like(prompt))
    assert list(alone[0].token_ids) == greedy[0, prompt.shape[1] :].tolist()


def test_gemma_rolls_back_far_past_its_window(pair):
    """Its sliding layers see 512 tokens; it reads 700, is cut back 600 and reads others."""
    gemma = pair[1]
    ids = gemma.prompt_ids(" ".join(f"word{i} and" for i in range(200)))[:700]
    context = gemma.open(ids)
    gemma.read([context], [[len(ids)]])
    other = ids[:100] + ids[150:]
    context.rewrite(0, other)
    assert context.held == 100
    ((row,),) = gemma.read([context], [[len(other)]]).lists()
    gemma.close(context)
    torch.testing.assert_close(row.logits, reference.logits(gemma, other), atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("which", [0, 1])
def test_rereading_the_tail_equals_rereading_everything(pair, which):
    reader = pair[which].reader
    for seed in range(40):
        rng = Random(seed)
        text, response = random_text(rng, 60).encode(), bytearray()
        transcript, settled = Transcript(reader), []
        while len(response) < len(text):
            response += text[len(response) : len(response) + rng.randint(1, 9)]
            window = text[len(response) : len(response) + rng.randint(0, 9)]
            reading = transcript.read(response, window)
            assert settled + reading.ids == reader.read(bytes(response) + window).ids
            transcript.settle(response, reading)
            settled = (settled + reading.ids)[: transcript.settled_ids]
