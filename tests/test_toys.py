"""The toys are what they are said to be: else the tests that use them prove nothing."""

from random import Random

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.toy_text import random_text
from tests.toys import KINDS, LOSSY, end_ids, save_toy, toy_model, toy_tokenizer

NORMALIZED = ("qwen", "nfkc")


@pytest.mark.parametrize("kind", KINDS)
def test_a_toy_gives_text_back(kind):
    tokenizer = toy_tokenizer(kind)
    for seed in range(20):
        # SentencePiece reads `▁` as a space, Unigram `<0x41>` as a byte; a dummy prefix is not put before a space
        text = "x" + random_text(Random(seed), 30).replace("▁", "_").replace("<0x", "<0")
        ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        again = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        normalizer = tokenizer.backend_tokenizer.normalizer
        assert again == (normalizer.normalize_str(text) if kind in NORMALIZED else text)


@pytest.mark.parametrize("kind", LOSSY)
def test_a_lossy_toy_does_not(kind):
    tokenizer = toy_tokenizer(kind)
    text = " Two  Words\n\n漢 "
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) != text


def test_the_same_seed_is_the_same_toy_and_another_seed_another():
    make = toy_tokenizer.__wrapped__
    first, again, other = make("gpt2", 1), make("gpt2", 1), make("gpt2", 2)
    assert first.get_vocab() == again.get_vocab() != other.get_vocab()
    weights = [toy_model("llama", seed, tokenizer).lm_head.weight for seed, tokenizer in [(3, first), (3, again)]]
    assert torch.equal(*weights)


def test_kinds_cut_the_same_text_differently():
    text = "Anna sells 123 apples each day.\n\nHow many minutes?"
    cuts = {kind: tuple(toy_tokenizer(kind).tokenize(text)) for kind in KINDS}
    assert len(set(cuts.values())) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_toy_loads_as_it_was(kind, tmp_path):
    save_toy(tmp_path, kind, 5, vocab_pad=3)
    tokenizer, model = AutoTokenizer.from_pretrained(tmp_path), AutoModelForCausalLM.from_pretrained(tmp_path)
    made = toy_tokenizer(kind, 5)
    assert tokenizer.get_vocab() == made.get_vocab()
    for text in (random_text(Random(seed), 30) for seed in range(10)):
        assert tokenizer(text)["input_ids"] == made(text)["input_ids"]
    assert tokenizer.chat_template == made.chat_template
    assert (tokenizer.eos_token, tokenizer.bos_token) == (made.eos_token, made.bos_token)
    assert model.generation_config.eos_token_id == end_ids(kind, 5)
    assert model.config.vocab_size == len(tokenizer) + 3
    again = toy_model(KINDS[kind].architecture, 5, made, vocab_pad=3)
    assert torch.equal(model.lm_head.weight, again.lm_head.weight)


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_token_is_neither_certain_nor_lost(kind):
    tokenizer = toy_tokenizer(kind, 1)
    model = toy_model(KINDS[kind].architecture, 1, tokenizer)
    ids = tokenizer("Anna has 12 apples and Ben buys  3 more. How many are left?\n\n", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        peaks = model(ids).logits[0].softmax(-1).amax(-1)
    assert 0.2 < peaks.mean() < 0.9
    assert peaks.min() < 0.5 < peaks.max()
