"""Train a model of the toy pair: `python -m demo.train a` (or b, or b_on_a: b's skills on a's tokenizer).

Under five minutes on two idle cores; deterministic as far as the platform is. The result is an ordinary model folder,
float16, in demo/models/.
"""

import json
import math
import sys
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from demo.world import TRAIN_SEED, Problem, problems

MODELS = Path(__file__).parent / "models"
END = "</s>"
BATCH, RATE, STEPS = 16, 3e-3, 1500


@dataclass(frozen=True)
class Recipe:
    """tokenizer: byte-level or metaspace. shares: of shop, road and trade problems in training. reads: the same, of
    the text the tokenizer is made from."""

    tokenizer: str
    shares: tuple[float, float, float]
    reads: tuple[float, float, float]
    seed: int


A_TEXT, B_TEXT = (0.9, 0.05, 0.05), (0.05, 0.9, 0.05)
RECIPES = {
    "a": Recipe("byte-level", (0.91, 0.05, 0.04), A_TEXT, 1),
    "b": Recipe("metaspace", (0.065, 0.89, 0.045), B_TEXT, 2),
    "b_on_a": Recipe("byte-level", (0.065, 0.89, 0.045), A_TEXT, 2),
}


def make_tokenizer(recipe: Recipe) -> PreTrainedTokenizerFast:
    """A byte-level BPE of 900 entries, or a metaspace BPE with byte fallback of 1,350; digits are single in both."""
    texts = [p.prompt() + p.response() for p in islice(problems(TRAIN_SEED - 1, recipe.reads), 4000)]
    digits = pre_tokenizers.Digits(individual_digits=True)
    if recipe.tokenizer == "byte-level":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
        made.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=900, initial_alphabet=sorted(alphabet), special_tokens=[END], show_progress=False
        )
        made.train_from_iterator(texts, trainer)
    else:
        made = _metaspace(texts, digits)
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END)


def _metaspace(texts: list[str], digits) -> Tokenizer:
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    metaspace, punctuation = pre_tokenizers.Metaspace(prepend_scheme="never"), pre_tokenizers.Punctuation("isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, metaspace, punctuation])
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    trainer = trainers.BpeTrainer(vocab_size=1350, special_tokens=["<unk>", END, *fallback], show_progress=False)
    made.train_from_iterator(texts, trainer)
    parts = json.loads(made.to_str())
    # the trainer can only be told of the byte pieces as special tokens; they are ordinary ones
    parts["added_tokens"] = [token for token in parts["added_tokens"] if token["content"] not in fallback]
    return Tokenizer.from_str(json.dumps(parts))


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A Llama of 0.9 million parameters."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=128, intermediate_size=512, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=4096,
            tie_word_embeddings=True, bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id, pad_token_id=None,
        )
    )  # fmt: skip


def batch_of(tokenizer: PreTrainedTokenizerFast, some: list[Problem]) -> tuple[torch.Tensor, torch.Tensor]:
    """ids and labels (n, longest): the loss counts on the solution and the end only."""
    rows = []
    for problem in some:
        prompt = tokenizer(problem.prompt(), add_special_tokens=False)["input_ids"]
        response = tokenizer(problem.response(), add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]
        rows.append((prompt + response, [-100] * len(prompt) + response))
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in rows])
    labels = torch.tensor([labels + [-100] * (longest - len(labels)) for _, labels in rows])
    return ids, labels


def train(recipe: Recipe, steps: int = STEPS) -> tuple[PreTrainedTokenizerFast, LlamaForCausalLM]:
    """AdamW with a cosine schedule."""
    torch.manual_seed(recipe.seed)
    tokenizer = make_tokenizer(recipe)
    model = make_model(tokenizer).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 50) * (0.02 + 0.49 * (1 + math.cos(math.pi * step / steps)))
    )
    stream, start = problems(TRAIN_SEED + recipe.seed, recipe.shares), time.time()
    for step in range(steps):
        ids, labels = batch_of(tokenizer, list(islice(stream, BATCH)))
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 100 == 99:
            print(f"step {step + 1} of {steps}, loss {loss.item():.3f}, {time.time() - start:.0f} s", flush=True)
    return tokenizer, model.eval()


def main(name: str) -> None:
    """Train one model and save it."""
    tokenizer, model = train(RECIPES[name])
    model.half().save_pretrained(MODELS / name)
    GenerationConfig(eos_token_id=tokenizer.eos_token_id).save_pretrained(MODELS / name)
    tokenizer.save_pretrained(MODELS / name)
    print(f"saved in {MODELS / name}")


if __name__ == "__main__":
    if sys.argv[1:] not in [[name] for name in RECIPES]:
        sys.exit(f"usage: python -m demo.train {'|'.join(RECIPES)}")
    main(sys.argv[1])
