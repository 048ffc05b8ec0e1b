"""Toy tokenizers and language models, made in memory from a seed: what tests use in place of downloads.

KINDS holds every kind of tokenizer that the project reads, with a vocabulary of a few hundred; LOSSY the kinds
that it must refuse. The models on them are real transformers models of two layers, whose weights are set so that
models with different tokenizers often agree on what comes next and often do not.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random

import torch
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch.nn.functional import normalize
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from tests.toy_text import corpus

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = LLAMA3.replace("{1,3}", "")

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA3_CHAT = (
    "{{ bos_token }}"
    "{% for m in messages %}<|start|>{{ m.role }}<|end|>\n\n{{ m.content }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant<|end|>\n\n{% endif %}"
)
INST = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }} {{ eos_token }}{% endif %}{% endfor %}"
)


# Tokenizers


def _byte_level(seed: str, *, special: Iterable[str], regex: str | None = None, normalizer=None, added=()) -> Tokenizer:
    """Byte-level BPE; regex None: GPT-2's own. added: ordinary text that is matched before anything else."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if regex is not None:
        split = pre_tokenizers.Split(Regex(regex), "isolated")
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    special = list(special)
    trainer = trainers.BpeTrainer(
        vocab_size=256 + len(special) + Random(seed).randint(40, 250),
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(seed), trainer)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in added])
    return tokenizer


def _pieces(seed: str, avoid: str = "") -> tuple[list[str], list[tuple[str, str]]]:
    """The pieces and merges of a SentencePiece-like BPE, trained on words that begin with `▁`; rare characters
    and those to avoid are left to the bytes."""
    lines = [line.replace(" ", "▁") for line in corpus(seed)]
    counts = Counter("".join(lines))
    alphabet = sorted(char for char, n in counts.items() if n >= 8 and char not in avoid)
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + Random(seed).randint(40, 250),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    kept = set(alphabet)
    trained.train_from_iterator(["".join(char for char in line if char in kept) for line in lines], trainer)
    vocab = trained.get_vocab()
    merges = [tuple(pair) for pair in json.loads(trained.to_str())["model"]["merges"]]
    return sorted(vocab, key=vocab.get), merges


def _sentencepiece_bpe(
    seed: int,
    *,
    special: Iterable[str],
    bos: str,
    avoid="\n",
    normalizer=None,
    pre_tokenizer=None,
    dummy=True,
    runs=(),
) -> Tokenizer:
    """BPE with byte fallback. dummy: the decoder takes off the space that is put before a text. runs: added
    tokens of white space, each also a merge, as Gemma has them."""
    pieces, merges = _pieces(seed, avoid)
    merges += [(run[: len(run) // 2], run[len(run) // 2 :]) for run in runs]
    order = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), *runs, *pieces]
    vocab = {piece: i for i, piece in enumerate(dict.fromkeys(order))}
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    strip = [decoders.Strip(" ", 1, 0)] if dummy else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in special])
    tokenizer.add_tokens([AddedToken(run, normalized=False) for run in runs])
    return _with_bos(tokenizer, bos)


def _unigram(seed: str, *, byte_fallback: bool = True) -> Tokenizer:
    """Unigram with Metaspace; its scores fall with the rank of a piece."""
    control = ["<unk>", "<s>", "</s>"]
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)] if byte_fallback else []
    pieces = [piece for piece in _pieces(seed)[0] if piece not in control]
    single = len([piece for piece in pieces if len(piece) == 1])
    scored = [(piece, -4.0 if i < single else -5.0 - (i - single) * 0.01) for i, piece in enumerate(pieces)]
    vocab = [*((piece, 0.0) for piece in control), *((piece, -20.0) for piece in bytes_), *scored]
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id=0, byte_fallback=byte_fallback))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always")
    metaspace = decoders.Metaspace("▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), metaspace]) if byte_fallback else metaspace
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in control])
    return _with_bos(tokenizer, "<s>")


def _with_bos(tokenizer: Tokenizer, bos: str) -> Tokenizer:
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    return tokenizer


def _llama3(seed: str) -> Tokenizer:
    special = ("<|begin_of_text|>", "<|end_of_text|>", "<|start|>", "<|end|>", "<|eot_id|>")
    return _with_bos(_byte_level(seed, special=special, regex=LLAMA3), special[0])


def _metaspace(seed: str, scheme: str) -> Tokenizer:
    metaspace = pre_tokenizers.Metaspace("▁", prepend_scheme=scheme, split=scheme != "first")
    return _sentencepiece_bpe(
        seed, special=("<unk>", "<s>", "</s>"), bos="<s>", pre_tokenizer=metaspace, dummy=scheme != "never"
    )


def _llama2(seed: str) -> Tokenizer:
    dummy = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return _sentencepiece_bpe(seed, special=("<unk>", "<s>", "</s>"), bos="<s>", normalizer=dummy)


def _gemma(seed: str, normalizer=None) -> Tokenizer:
    return _sentencepiece_bpe(
        seed,
        special=("<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"),
        bos="<bos>",
        avoid="",
        normalizer=normalizer or normalizers.Replace(" ", "▁"),
        pre_tokenizer=pre_tokenizers.Split(" ", "merged_with_previous"),
        dummy=False,
        runs=("▁▁", "▁▁▁", "▁▁▁▁", "\n\n", "\n\n\n"),
    )


def _wordpiece(seed: str) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]", "[SEP]"], show_progress=False)
    tokenizer.train_from_iterator(corpus(seed), trainer)
    return tokenizer


def _collapsing(seed: str) -> Tokenizer:
    collapse = normalizers.Replace(Regex(r"\s+"), " ")
    return _gemma(seed, normalizers.Sequence([collapse, normalizers.Replace(" ", "▁")]))


@dataclass(frozen=True)
class Kind:
    """A kind of tokenizer. build: seed -> tokenizer. more_eos: EOS tokens only the generation config knows."""

    build: Callable[[str], Tokenizer]
    eos: str
    bos: str | None = None
    chat_template: str | None = None
    more_eos: tuple[str, ...] = ()
    architecture: str = "llama"


END = "<|endoftext|>"
CHAT = (END, "<|im_start|>", "<|im_end|>")
LLAMA = {"eos": "</s>", "bos": "<s>"}
GEMMA = {"eos": "<eos>", "bos": "<bos>", "architecture": "gemma3"}

KINDS: dict[str, Kind] = {
    "gpt2": Kind(partial(_byte_level, special=CHAT), END),
    "llama3": Kind(_llama3, "<|end_of_text|>", "<|begin_of_text|>", LLAMA3_CHAT),
    "qwen": Kind(
        partial(_byte_level, special=CHAT, regex=QWEN, normalizer=normalizers.NFC()),
        "<|im_end|>",
        chat_template=CHATML,
        more_eos=(END,),
        architecture="qwen2",
    ),
    "nfkc": Kind(partial(_byte_level, special=CHAT, normalizer=normalizers.NFKC()), END),
    # runs of spaces as added tokens, as in GPT-NeoX, some beside pieces of the vocabulary with the same bytes
    "neox": Kind(partial(_byte_level, special=CHAT, added=("    ", "   ", "  ", "\n\n", " the")), END),
    "llama2": Kind(_llama2, **LLAMA, chat_template=INST, architecture="mistral"),
    "gemma": Kind(_gemma, **GEMMA, more_eos=("<end_of_turn>",)),
    "metaspace-first": Kind(partial(_metaspace, scheme="first"), **LLAMA),
    "metaspace-always": Kind(partial(_metaspace, scheme="always"), **LLAMA),
    "metaspace-never": Kind(partial(_metaspace, scheme="never"), **LLAMA, architecture="mistral"),
    "unigram": Kind(_unigram, **LLAMA),
}

LOSSY: dict[str, Kind] = {
    "wordpiece": Kind(_wordpiece, "[SEP]"),
    "lowercase": Kind(partial(_byte_level, special=CHAT, normalizer=normalizers.Lowercase()), END),
    "strip": Kind(partial(_byte_level, special=CHAT, normalizer=normalizers.Strip()), END),
    "unigram-without-bytes": Kind(partial(_unigram, byte_fallback=False), **LLAMA),
    "collapse": Kind(_collapsing, **GEMMA),
}


@cache
def toy_tokenizer(kind: str, seed: int = 0) -> PreTrainedTokenizerFast:
    """The tokenizer of a kind in KINDS or LOSSY; other seeds have other pieces. Shared by all callers: copy it
    before changing it."""
    made = (KINDS | LOSSY)[kind]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made.build(f"{kind} {seed}"), eos_token=made.eos, bos_token=made.bos
    )
    tokenizer.chat_template = made.chat_template
    return tokenizer


# Models

HIDDEN = 32
CONFIGS = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "mistral": (MistralConfig, MistralForCausalLM),
    "gemma3": (Gemma3TextConfig, Gemma3ForCausalLM),
}


def toy_model(
    architecture: str,
    seed: int,
    tokenizer: PreTrainedTokenizerFast,
    *,
    window: int | None = None,
    vocab_pad: int = 0,
) -> PreTrainedModel:
    """A model in float32 with 2 layers of width 32, as follows from the seed and the tokenizer.

    window: of its sliding attention (mistral: all layers; gemma3: the first, 8 if not given; others have none).
    vocab_pad: how many more logits than the tokenizer has ids.
    Embedding and head know which token follows which in texts that toys have in common, so toys agree more often
    than by chance; the layers between are random and attend to everything before.
    """
    made_config, made_model = CONFIGS[architecture]
    options = {"sliding_window": window} if architecture in ("mistral", "gemma3") else {}
    if architecture == "gemma3":
        options |= {"sliding_window": window or 8, "layer_types": ["sliding_attention", "full_attention"]}
        options |= {"query_pre_attn_scalar": 8}
    config = made_config(
        vocab_size=len(tokenizer) + vocab_pad, hidden_size=HIDDEN, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=2048,
        tie_word_embeddings=False, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=None, **options,
    )  # fmt: skip
    model = made_model(config).eval()
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.model.layers.parameters():
            if parameter.ndim == 2:
                # the stronger the layers, the more a toy has a mind of its own
                parameter.normal_(0, (0.08, 0.15, 0.25)[seed % 3], generator=random)
            elif parameter.ndim == 1:  # biases (Qwen) and the norms' weights
                parameter.add_(torch.randn(parameter.shape, generator=random), alpha=0.1)
        _learn_bigrams(model, tokenizer, seed)
        _set_peaks(model, tokenizer, seed)
    return model


def _learn_bigrams(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, seed: int) -> None:
    """Set embedding and head so that their product is what follows what in some text, in as many directions as
    the model is wide. Column 0 of the embedding is constant: what the head has there is how common a token is."""
    size = model.config.vocab_size
    counts = torch.zeros(size, size)
    lines = corpus(seed) + corpus(0)
    for start in range(0, len(lines), 5):
        text = " ".join(lines[start : start + 5])
        ids = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        counts.index_put_((torch.tensor(ids[:-1]), torch.tensor(ids[1:])), torch.ones(()), accumulate=True)
    common = (counts.sum(0) + 0.05) / (counts.sum() + 0.05 * size)
    surprise = ((counts + common) / (counts.sum(1, keepdim=True) + 1) / common).log()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        left, strength, right = torch.svd_lowrank(surprise, HIDDEN - 1, niter=4)
    rows_in = torch.cat([torch.ones(size, 1), 8 * normalize(left * strength.sqrt(), eps=1e-2)], 1)
    rows_out = torch.cat([common.log()[:, None], right * strength.sqrt()], 1)
    # tokens that the text never has would be as likely as each other: a tie that rounding decides
    rows_out += 0.1 * torch.randn(rows_out.shape, generator=torch.Generator().manual_seed(seed))
    model.get_input_embeddings().weight.copy_(rows_in)
    model.get_output_embeddings().weight.copy_(rows_out)


def _set_peaks(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, seed: int) -> None:
    """Scale the head until the best token has 0.6 of the probability on average."""
    ids = tokenizer("".join(corpus(seed, 8)), return_tensors="pt")["input_ids"]
    logits = model(ids).logits[0]
    low, high = 0.0, 20.0
    for _ in range(20):
        middle = (low + high) / 2
        mean_peak = (middle * logits).softmax(-1).amax(-1).mean()
        low, high = (middle, high) if mean_peak < 0.6 else (low, middle)
    model.get_output_embeddings().weight.mul_(low)


def end_ids(kind: str, seed: int = 0) -> list[int]:
    """The EOS ids that the generation config of a toy lists."""
    made, tokenizer = KINDS[kind], toy_tokenizer(kind, seed)
    return [tokenizer.convert_tokens_to_ids(token) for token in (made.eos, *made.more_eos)]


def save_toy(folder: Path, kind: str, seed: int = 0, **options) -> Path:
    """Write a toy as a model folder: config, safetensors, generation config, tokenizer. options: toy_model's"""
    tokenizer = toy_tokenizer(kind, seed)
    model = toy_model(KINDS[kind].architecture, seed, tokenizer, **options)
    model.generation_config.eos_token_id = end_ids(kind, seed)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
