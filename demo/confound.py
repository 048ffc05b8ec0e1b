"""What makes an every-token ensemble collapse? `python -m demo.confound toy` or `... real` (the small real models).

The baseline ensembles at every token. Each row switches one fault into it that published implementations have, or takes
one thing out; none of them is a flag of the product.

    none            byte-exact symbols, mass counted once, verifiers read the text again at every step
    (a) no OOV      as none, but tokens that start where a verifier has no boundary are left to the drafter
    (b) double      a missing symbol gets its first token's probability even if that is already counted
    (c) strings     vocabulary entries are compared as strings, `Ġ` taken for `▁`, as if the alphabets were one
    (d) append      a verifier appends its own pieces of the chosen token, and never reads the text again
    one tokenizer   none, with a verifier of the same skills on the drafter's tokenizer (toy only)
"""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from tqdm import tqdm

from data.load import load
from data.prompts import user_message
from demo.table import MODELS, questions
from ensemble.tokens import EOS, Symbol, Vocabulary
from eval.grade import score
from eval.report import accuracy_interval
from safe.config import SafeConfig
from safe.decode import generate
from safe.lm import LM, NextToken
from safe.loading import LoadOptions, load_models
from safe.vote import Voter

UNIT, TIMES = 4, 8  # an answer that ends in a unit of so few characters, so many times, ends in garbage
REPEATED = re.compile(rf"(\S{{1,{UNIT}}}?)\1{{{TIMES - 1},}}\s*$")


@dataclass(frozen=True)
class Fault:
    """What is wrong with a baseline."""

    double: bool = False
    strings: bool = False
    append: bool = False


FAULTS = {
    "none": Fault(),
    "(b) double-counted mass": Fault(double=True),
    "(c) strings compared": Fault(strings=True),
    "(d) own pieces appended": Fault(append=True),
    "(b) + (c) + (d)": Fault(True, True, True),
}


def ends_in_garbage(text: str) -> bool:
    """Whether a text ends in one short piece repeated again and again, like `đđđđđđđđ`."""
    return REPEATED.search(text[-200:]) is not None


class StringModel:
    """A model whose vocabulary is compared as strings: what stands for a symbol is the spelling of a token."""

    def __init__(self, model: LM, pieces: Sequence[str | None]):
        self.model, self.reader = model, self
        spelt = [EOS if s == EOS else p.replace("Ġ", "▁").encode() if s is not None else None
                 for s, p in zip(model.vocabulary.symbols, pieces, strict=True)]  # fmt: skip
        self.vocabulary = Vocabulary(model.name, tuple(spelt), model.vocabulary.byte_fallback)
        self.index, self.device = model.index, model.device

    def first_piece(self, symbol: Symbol) -> Symbol | None:
        """The spelling of the first token of the string's text."""
        ids = self.spell(symbol)
        return self.vocabulary.symbols[ids[0]] if ids else None

    def spell(self, symbol: Symbol) -> list[int]:
        """The ids that write a string: the token spelt so, else the tokenization of its text."""
        if symbol in self.vocabulary:
            return [self.vocabulary.ids_of[symbol][0]]
        return self.model.reader.read(symbol.decode(errors="ignore").replace("▁", " ").encode()).ids


class FaultyVoter(Voter):
    """A voter that counts mass twice."""

    def _masses_over(self, union: Sequence[Symbol], row: NextToken) -> list[float]:
        model = row.model
        known = model.vocabulary
        standing = [symbol if symbol in known else model.reader.first_piece(symbol) for symbol in union]
        masses = [0.0 if symbol is None else row.prob(symbol) for symbol in standing]
        total = sum(masses)
        return [mass / total for mass in masses] if total else masses


class Baseline:
    """An every-token UniTE ensemble with a fault."""

    def __init__(self, models: Sequence[LM], fault: Fault, max_new_tokens: int):
        self.models, self.fault, self.limit = models, fault, max_new_tokens
        config = SafeConfig(schedule="every", sharpen_type="none", max_new_tokens=max_new_tokens)
        self.seen = [StringModel(m, pieces_of(m)) for m in models] if fault.strings else list(models)
        self.voter = (FaultyVoter if fault.double else Voter)(self.seen, config)

    @torch.inference_mode()
    def answer(self, question: str) -> str:
        """The response to one question."""
        contexts = [model.open(model.prompt_ids(question)) for model in self.models]
        drafter, written = self.models[0], []
        while len(written) < self.limit and not (written and drafter.vocabulary.symbols[written[-1]] == EOS):
            rows = [m.read([c], [[len(c.ids)]]).lists()[0][0] for m, c in zip(self.models, contexts, strict=True)]
            best = self.voter.vote([NextToken(m, r.logits, r.best) for m, r in zip(self.seen, rows, strict=True)]).best
            ids = [drafter.default_eos] if best == EOS else self._spell(best)
            if not ids:  # a string that is no text writes nothing: the answer cannot go on
                break
            written += ids
            contexts[0].rewrite(len(contexts[0].ids), ids)
            self._follow(contexts, written, ids)
        for model, context in zip(self.models, contexts, strict=True):
            model.close(context)
        return drafter.vocabulary.join(written[: self.limit]).decode(errors="replace")

    def _spell(self, symbol: Symbol) -> list[int]:
        return self.seen[0].spell(symbol) if self.fault.strings else self.models[0].reader.spell(symbol)

    def _follow(self, contexts, written: list[int], ids: list[int]) -> None:
        """Bring the verifiers' ids up to what was written."""
        join = self.models[0].vocabulary.join
        for model, context in zip(self.models[1:], contexts[1:], strict=True):
            if self.fault.append:
                context.rewrite(len(context.ids), model.reader.read(join(ids)).ids)
            else:
                context.rewrite(context.prompt_length, model.reader.read(join(written)).ids)


def pieces_of(model: LM) -> list[str | None]:
    """How each id of a model is spelt in its own vocabulary; None for padding."""
    spelt = {token: piece for piece, token in model.reader.spellings().items()}
    return [spelt.get(token) for token in range(len(model.vocabulary))]


def row(name: str, answers: Sequence[str], golds: Sequence[str]) -> str:
    """One line of the table: accuracy, and how many answers end in repeated garbage, with their intervals."""
    n = len(golds)
    right = sum(score("toy", text, gold).correct for text, gold in zip(answers, golds, strict=True))
    garbage = sum(map(ends_in_garbage, answers))
    return f"| {name} | {_share(right, n)} | {_share(garbage, n)} | {n} |"


def _share(count: int, n: int) -> str:
    low, high = accuracy_interval(count, n)
    return f"{100 * count / n:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def study(models: Sequence[LM], twin: LM | None, prompts: Sequence[str], golds: Sequence[str], tokens: int) -> None:
    """Print the table of one pair."""
    print("| every-token UniTE | accuracy | ends in garbage | n |\n|---|---|---|---|", flush=True)
    plain = SafeConfig(max_new_tokens=tokens, sharpen_type="none")
    for name, config in {"drafter alone": replace(plain, ensemble=False), "(a) no OOV-like token": plain}.items():
        answers = dict(generate(models, prompts, config))
        print(row(name, [answers[i].text for i in range(len(prompts))], golds), flush=True)
    for name, fault in FAULTS.items():
        baseline = Baseline(models, fault, tokens)
        print(row(name, [baseline.answer(prompt) for prompt in tqdm(prompts, leave=False)], golds), flush=True)
    if twin is not None:
        baseline = Baseline([models[0], twin], Fault(), tokens)
        print(row("one tokenizer", [baseline.answer(prompt) for prompt in prompts], golds), flush=True)


def main() -> None:
    """Run the study of a pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pair", choices=("toy", "real"))
    parser.add_argument("--limit", type=int, default=240, help="questions")
    parser.add_argument("--models", type=Path, default=Path("models"), help="real: where the small models are")
    parser.add_argument("--data_path", help="real: GSM8K's test rows")
    args = parser.parse_args()
    if args.pair == "toy":
        *pair, twin = load_models([str(MODELS / name) for name in ("a", "b", "b_on_a")], [LoadOptions()] * 3)
        prompts, golds = questions(args.limit)
        study(pair, twin, prompts, golds, 128)
    else:
        pair = load_models([str(args.models / name) for name in ("smollm2", "gemma3")], [LoadOptions()] * 2)
        examples = load("gsm8k", args.data_path, limit=args.limit).examples
        study(pair, None, [user_message("gsm8k", e, None) for e in examples], [e.gold for e in examples], 128)


if __name__ == "__main__":
    sys.exit(main())
