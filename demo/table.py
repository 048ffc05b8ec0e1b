"""The paper's table on a laptop: `python -m demo.table`, or `make demo`.

The toy pair alone, ensembled at every token, and ensembled where SAFE says so, on held-out questions that need what
only the other model knows. Markdown on stdout; every accuracy with its n and its 95% Wilson interval.
"""

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import torch
from tqdm import tqdm
from transformers.utils.logging import disable_progress_bar

from data.load import load
from data.prompts import user_message
from eval.grade import score
from eval.report import accuracy_interval
from safe.config import SafeConfig
from safe.decode import generate
from safe.lm import LM
from safe.loading import LoadOptions, load_models

MODELS = Path(__file__).parent / "models"
BATCH, QUESTIONS = 32, 240
BASE = SafeConfig(max_new_tokens=128, batch_size=BATCH)
METHODS = {
    "drafter alone": replace(BASE, ensemble=False),
    "UniTE, every token": replace(BASE, schedule="every", sharpen_type="none"),
    "GaC, every token below its gate": replace(BASE, schedule="every", ensemble_type="gac", sharpen_type="none"),
    "UniTE+SAFE, no sharpening": replace(BASE, sharpen_type="none"),
    "UniTE+SAFE, geom": replace(BASE, sharpen_type="geom"),
    "UniTE+SAFE, heur": BASE,
    "UniTE+SAFE, heur, gamma 1": replace(BASE, gamma=1),
    "UniTE+SAFE, heur, gamma 3": replace(BASE, gamma=3),
    "UniTE+SAFE, heur, gamma 8": replace(BASE, gamma=8),
    "GaC+SAFE, heur": replace(BASE, ensemble_type="gac"),
}


@dataclass(frozen=True)
class Cell:
    """How one method did on n questions. ensemble_rate: E/T; tokens_per_second: of the batch."""

    correct: int
    n: int
    ensemble_rate: float
    tokens_per_second: float

    @property
    def accuracy(self) -> float:
        return self.correct / self.n

    def __str__(self) -> str:
        low, high = accuracy_interval(self.correct, self.n)
        share = f"{100 * self.accuracy:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
        return f"{share} | {100 * self.ensemble_rate:.1f}% | {self.tokens_per_second:.0f}"


def questions(n: int | None) -> tuple[list[str], list[str]]:
    """Prompts and golds of the toy questions."""
    examples = load("toy", limit=n).examples
    return [user_message("toy", example, None) for example in examples], [example.gold for example in examples]


def cell(models: Sequence[LM], config: SafeConfig, prompts: Sequence[str], golds: Sequence[str]) -> Cell:
    """One method on all questions."""
    for model in models:
        model.reserve(config.batch_size)
    start = time.perf_counter()
    answers = dict(generate(models, prompts, config))
    seconds = time.perf_counter() - start
    tokens = sum(len(answer.token_ids) for answer in answers.values())
    right = sum(
        score("toy", answers[i].text, gold, truncated=answers[i].finish_reason == "length").correct
        for i, gold in enumerate(golds)
    )
    ensembled = sum(answer.verdicts["ensembled"] for answer in answers.values())
    return Cell(right, len(golds), ensembled / tokens, tokens / seconds)


@cache
def toy_pair() -> list[LM]:
    """The two models that ship with the project."""
    disable_progress_bar()  # they load in no time
    return load_models([str(MODELS / name) for name in ("a", "b")], [LoadOptions(device="cpu")] * 2, rows=BATCH)


def one_cell(method: str, drafter: str, n: int) -> Cell:
    """One method with one drafter on n questions, in a process of its own."""
    a, b = toy_pair()
    return cell([a, b] if drafter == "a" else [b, a], METHODS[method], *questions(n))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=QUESTIONS, help="questions (of 300)")
    n = parser.parse_args().limit
    print(f"{n} questions; accuracy with its 95% interval, E/T, tokens/s of {BATCH} answers in flight\n")
    print("| method | a drafts: accuracy | E/T | tokens/s | b drafts: accuracy | E/T | tokens/s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    methods, drafters = zip(*product(METHODS, "ab"), strict=True)
    # the models are too small for more than one thread each, but two cells run at a time
    with ProcessPoolExecutor(2, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        cells = pool.map(one_cell, methods, drafters, [n] * len(methods))
        for method in tqdm(METHODS, leave=False):
            tqdm.write(f"| {method} | {next(cells)} | {next(cells)} |")


if __name__ == "__main__":
    main()
