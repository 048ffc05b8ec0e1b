"""Toy language models as the decoder takes them."""

from functools import cache, partial
from random import Random

import torch

from ensemble.tokens import read_vocabulary
from safe.lm import LM
from safe.loading import prompt_ids
from safe.reader import Reader
from tests.toys import KINDS, end_ids, toy_model, toy_tokenizer

PROMPTS = ("How many apples does Anna buy?", "Two plus two is", "naïve 漢字 and  spaces\n")


@cache
def toy_lm(
    kind: str, seed: int, *, tokenizer_seed: int = 0, window: int | None = None, vocab_pad: int = 0, dtype=torch.float32
) -> LM:
    """A toy of a kind; it is shared by all callers, its cache is empty between answers."""
    tokenizer = toy_tokenizer(kind, tokenizer_seed)
    model = toy_model(KINDS[kind].architecture, seed, tokenizer, window=window, vocab_pad=vocab_pad).to(dtype)
    name = f"{kind}-{seed}"
    vocabulary = read_vocabulary(
        tokenizer.backend_tokenizer,
        name=name,
        size=len(tokenizer) + vocab_pad,
        eos_ids=end_ids(kind, tokenizer_seed),
        silent_ids=tokenizer.all_special_ids,
    )
    reader = _reader(kind, tokenizer_seed, vocab_pad, vocabulary)
    return LM(name, model, vocabulary, reader, partial(prompt_ids, tokenizer), tokenizer.eos_token_id)


_READERS: dict[tuple, Reader] = {}


def _reader(kind: str, tokenizer_seed: int, vocab_pad: int, vocabulary) -> Reader:
    """One reader for all toys with the same tokenizer: making one takes most of the time of making a toy."""
    key = (kind, tokenizer_seed, vocab_pad)
    if key not in _READERS:
        _READERS[key] = Reader(toy_tokenizer(kind, tokenizer_seed).backend_tokenizer, vocabulary)
    return _READERS[key]


def toy_team(seed: int, dtype: torch.dtype = torch.float32) -> list[LM]:
    """Two or three toys of different kinds: other tokenizers, sliding windows, padded vocabularies."""
    rng = Random(seed)
    kinds = rng.sample(list(KINDS), rng.choice([2, 2, 3]))
    team = []
    for kind in kinds:
        slides = KINDS[kind].architecture in ("mistral", "gemma3")
        number, window = rng.randrange(4), rng.choice([None, 5, 12]) if slides else None
        team.append(toy_lm(kind, number, window=window, vocab_pad=rng.choice([0, 7]), dtype=dtype))
    return team
