"""What makes an every-token ensemble collapse? `python -m demo.confound toy` or `... real` (the small real models).

The baseline ensembles at every token. Each row switches one fault into it that published implementations have, or takes
one thing out; none of them is a flag of the product.

    none            byte-exact symbols, mass counted once, verifiers read the text again at every step
    (a) no OOV      as none, but tokens that start where a verifier has no boundary are left to the drafter; every
                    other token is ensembled (SAFE's first check without its second)
    (b) double      a missing symbol gets its first token's probability even if that is already counted
    (c) strings     vocabulary entries are compared as strings, `Ġ` taken for `▁`, as if the alphabets were one
    (c) raw         the same, and `Ġ` and `▁` are two letters as well
    (d) append      a verifier appends its own pieces of the chosen token, and never reads the text again
    one tokenizer   none, with a verifier of the same skills on the drafter's tokenizer (toy only)
"""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

import torch
from tqdm import tqdm

from data.load import load
from data.prompts import user_message
from demo.table import BATCH, MODELS, questions
from ensemble.tokens import EOS, Symbol, Vocabulary
from eval.grade import score
from eval.report import accuracy_interval
from safe.config import SafeConfig
from safe.decode import Decoder, Draft
from safe.lm import LM, Context, NextToken
from safe.loading import LoadOptions, load_models
from safe.verify import Verdict, View
from safe.vote import Voter

UNIT, TIMES = 4, 8  # an answer that ends in a unit of so few characters, so many times, ends in garbage
REPEATED = re.compile(rf"(\S{{1,{UNIT}}}?)\1{{{TIMES - 1},}}\s*$")
LEAKED = re.compile("[\u0100-\u0143▁]")  # what stands for a byte, or for a space, in a vocabulary's own spelling


@dataclass(frozen=True)
class Fault:
    """What is wrong with a baseline."""

    double: bool = False
    strings: bool = False
    append: bool = False
    raw: bool = False  # with strings: not even the marks of a space are told apart from text


FAULTS = {
    "none": Fault(),
    "(b) double-counted mass": Fault(double=True),
    "(c) strings compared": Fault(strings=True),
    "(c) raw strings compared": Fault(strings=True, raw=True),
    "(d) own pieces appended": Fault(append=True),
    "(b) + (c) + (d)": Fault(True, True, True),
}


def ends_in_garbage(text: str) -> bool:
    """Whether a text ends in one short piece repeated again and again, like `đđđđđđđđ`."""
    return REPEATED.search(text[-200:]) is not None


def leaks(text: str) -> bool:
    """Whether letters of a vocabulary's own alphabet stand in a text, like `Ġ` for a space (none of our questions
    has such a letter)."""
    return LEAKED.search(text) is not None


class StringModel:
    """A model whose vocabulary is compared as strings: what stands for a symbol is the spelling of a token."""

    def __init__(self, model: LM, pieces: Sequence[str | None], raw: bool):
        self.model, self.reader, self.raw = model, self, raw
        spelt = [EOS if s == EOS else (p if raw else p.replace("Ġ", "▁")).encode() if s is not None else None
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
        return self.model.reader.read(symbol if self.raw else symbol.replace("▁".encode(), b" ")).ids


class FaultyVoter(Voter):
    """A voter that counts mass twice."""

    def _masses_over(self, union: Sequence[Symbol], row: NextToken) -> list[float]:
        model = row.model
        known = model.vocabulary
        standing = [symbol if symbol in known else model.reader.first_piece(symbol) for symbol in union]
        masses = [0.0 if symbol is None else row.prob(symbol) for symbol in standing]
        total = sum(masses)
        return [mass / total for mass in masses] if total else masses


class WithoutOov(Decoder):
    """Ensembles at every token that starts where every verifier has a boundary, and at no other."""

    def _verdicts(self, draft: Draft, views: list[list[View] | None]) -> list[Verdict]:
        return [Verdict.OOV for _ in takewhile(lambda seen: seen is None, views)]


@dataclass
class Answering:
    """An answer in flight: each model's ids, and the drafter's ids of the response. over: whether it has ended."""

    contexts: list[Context]
    written: list[int] = field(default_factory=list)
    over: bool = False


class Baseline:
    """An every-token UniTE ensemble with a fault."""

    def __init__(self, models: Sequence[LM], fault: Fault, max_new_tokens: int):
        self.models, self.fault, self.limit = models, fault, max_new_tokens
        config = SafeConfig(schedule="every", sharpen_type="none", max_new_tokens=max_new_tokens)
        self.seen = [StringModel(m, pieces_of(m), fault.raw) for m in models] if fault.strings else list(models)
        self.voter = (FaultyVoter if fault.double else Voter)(self.seen, config)

    def answers(self, questions: Sequence[str]) -> list[str]:
        """The responses to some questions, BATCH of them in flight at a time."""
        batches = [questions[i : i + BATCH] for i in range(0, len(questions), BATCH)]
        return [text for batch in tqdm(batches, leave=False) for text in self._answer_all(batch)]

    def _answer_all(self, questions: Sequence[str]) -> list[str]:
        for model in self.models:
            model.reserve(len(questions))
        all_of_them = [Answering([m.open(m.prompt_ids(question)) for m in self.models]) for question in questions]
        going = list(all_of_them)
        while going:
            self._step(going)
            for place in reversed(range(len(going))):
                if going[place].over:
                    self._end(going, place)
        join = self.models[0].vocabulary.join
        return [join(each.written[: self.limit]).decode(errors="replace") for each in all_of_them]

    def _end(self, going: list[Answering], place: int) -> None:
        """Take an answer out; as in the caches, the last one moves into its place."""
        ended, going[place] = going[place], going[-1]
        going.pop()
        for model, context in zip(self.models, ended.contexts, strict=True):
            model.close(context)

    @torch.inference_mode()
    def _step(self, going: Sequence[Answering]) -> None:
        """One more symbol for every answer."""
        rows = []
        for m, model in enumerate(self.models):
            contexts = [each.contexts[m] for each in going]
            rows.append(model.read(contexts, [[len(context.ids)] for context in contexts]).lists())
        for n, each in enumerate(going):
            after = [NextToken(m, row[n][0].logits, row[n][0].best) for m, row in zip(self.seen, rows, strict=True)]
            best = self.voter.vote(after).best
            ids = [] if best == EOS else self._spell(best)
            each.written += ids
            # a string that is no text writes nothing: the answer cannot go on
            each.over = not ids or len(each.written) >= self.limit
            self._follow(each, ids)

    def _spell(self, symbol: Symbol) -> list[int]:
        return self.seen[0].spell(symbol) if self.fault.strings else self.models[0].reader.spell(symbol)

    def _follow(self, each: Answering, ids: list[int]) -> None:
        """Bring every model's ids up to what was written."""
        drafter, *verifiers = each.contexts
        drafter.rewrite(len(drafter.ids), ids)
        join = self.models[0].vocabulary.join
        for model, context in zip(self.models[1:], verifiers, strict=True):
            if self.fault.append:
                context.rewrite(len(context.ids), model.reader.spell(join(ids)))
            else:
                context.rewrite(context.prompt_length, model.reader.read(join(each.written)).ids)


def pieces_of(model: LM) -> list[str | None]:
    """How each id of a model is spelt in its own vocabulary; None for padding."""
    spelt = {token: piece for piece, token in model.reader.spellings().items()}
    return [spelt.get(token) for token in range(len(model.vocabulary))]


def row(name: str, answers: Sequence[str], golds: Sequence[str]) -> str:
    """One line of the table, with intervals: accuracy, and how many answers end in repeated garbage or hold letters of
    a vocabulary's alphabet."""
    n = len(golds)
    right = sum(score("toy", text, gold).correct for text, gold in zip(answers, golds, strict=True))
    garbage = sum(map(ends_in_garbage, answers))
    leaking = sum(map(leaks, answers))
    return f"| {name} | {_share(right, n)} | {_share(garbage, n)} | {_share(leaking, n)} | {n} |"


def _share(count: int, n: int) -> str:
    low, high = accuracy_interval(count, n)
    return f"{100 * count / n:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def study(models: Sequence[LM], twin: LM | None, prompts: Sequence[str], golds: Sequence[str], tokens: int) -> None:
    """Print the table of one pair."""
    print("| every-token UniTE | accuracy | ends in garbage | leaks letters | n |\n|---|---|---|---|---|", flush=True)
    plain = SafeConfig(max_new_tokens=tokens, sharpen_type="none", batch_size=BATCH)
    decoders = {
        "drafter alone": Decoder(models, replace(plain, ensemble=False)),
        "SAFE": Decoder(models, plain),
        "(a) no OOV-like token": WithoutOov(models, plain),
    }
    for name, decoder in decoders.items():
        for model in models:
            model.reserve(BATCH)
        answers = dict(decoder.generate(prompts))
        print(row(name, [answers[i].text for i in range(len(prompts))], golds), flush=True)
    baselines = {name: Baseline(models, fault, tokens) for name, fault in FAULTS.items()}
    if twin is not None:
        baselines["one tokenizer"] = Baseline([models[0], twin], Fault(), tokens)
    for name, baseline in baselines.items():
        print(row(name, baseline.answers(prompts), golds), flush=True)


def main() -> None:
    """Run the study of a pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pair", choices=("toy", "real"))
    parser.add_argument("--swap", action="store_true", help="b, or gemma3, drafts")
    parser.add_argument("--limit", type=int, default=240, help="questions")
    parser.add_argument("--models", type=Path, default=Path("models"), help="real: where the small models are")
    parser.add_argument("--data_path", help="real: GSM8K's test rows")
    args = parser.parse_args()
    if args.pair == "toy":
        # the control is there for one order only: b's skills on a's tokenizer
        names = ["b", "a"] if args.swap else ["a", "b", "b_on_a"]
        loaded = load_models([str(MODELS / name) for name in names], [LoadOptions(device="cpu")] * len(names))
        pair, twin = loaded[:2], loaded[2] if len(loaded) > 2 else None
        prompts, golds = questions(args.limit)
        study(pair, twin, prompts, golds, 128)
    else:
        names = ("gemma3", "smollm2") if args.swap else ("smollm2", "gemma3")
        pair = load_models([str(args.models / name) for name in names], [LoadOptions(device="cpu")] * 2)
        examples = load("gsm8k", args.data_path, limit=args.limit).examples
        study(pair, None, [user_message("gsm8k", e, None) for e in examples], [e.gold for e in examples], 128)


if __name__ == "__main__":
    sys.exit(main())
