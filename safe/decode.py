"""The loop: generate, verify, ensemble (Algorithm 1; SPEC 3), for any number of models and answers in flight."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile

from ensemble.tokens import EOS, Symbol
from safe.config import SafeConfig
from safe.lm import LM, Context, NextToken
from safe.lookahead import Lookahead, Prices
from safe.reader import Reading, Transcript
from safe.trace import TokenTrace, VoteTrace, trace_vote
from safe.verify import Drafted, Verdict, View, judge, shared_starts
from safe.vote import Voter

CPU_TOKEN_PRICE = 0.2  # of a one-token pass, for each further token of the same pass
PARTS = ("draft", "verify", "tokenize", "ensemble", "total")


@dataclass(frozen=True)
class Answer:
    """One finished answer and what it cost.

    text: the response without special tokens. token_ids: the drafter's ids of it, EOS included. finish_reason: "eos",
    "length", or "context" (the prompt leaves some model no room; no tokens). verdicts: how many tokens have each
    verdict, and how many of the ensembled ones were changed. forward_passes: one number a model. drafted: tokens
    the drafter proposed. seconds: by part, a share of the batch's time. trace: one entry a token, if asked for.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    verdicts: dict[str, int]
    forward_passes: tuple[int, ...]
    drafted: int
    seconds: dict[str, float]
    trace: tuple[TokenTrace, ...] | None = None


@dataclass(frozen=True)
class _Written:
    """One token of the response. vote: kept only for the trace."""

    token: int
    verdict: Verdict | None
    changed: bool = False
    vote: VoteTrace | None = None


class Draft:
    """An answer in flight: the response so far, the window behind it, and every model's ids for both."""

    def __init__(self, number: int, contexts: list[Context], models: Sequence[LM], lookahead: Lookahead):
        self.number, self.contexts, self.lookahead = number, contexts, lookahead
        self.vocabulary, self.spell = models[0].vocabulary, models[0].reader.spell
        self.eos_id = models[0].default_eos
        self.transcripts = [Transcript(model.reader) for model in models[1:]]
        self.response = bytearray()
        self.written: list[_Written] = []
        self.window: list[Drafted] = []
        self.drafted = 0
        self.seconds = dict.fromkeys(PARTS, 0.0)

    @property
    def ended(self) -> bool:
        return bool(self.written) and self.vocabulary.symbols[self.written[-1].token] == EOS

    @property
    def window_is_full(self) -> bool:
        """Whether it holds gamma tokens, or ends the answer."""
        return len(self.window) >= self.lookahead.gamma or bool(self.window) and self.window[-1].symbol == EOS

    def propose(self, after: NextToken) -> None:
        """Put the drafter's best next token behind the window."""
        self.window.append(Drafted(after.best, after.best_symbol, after))
        self.contexts[0].ids.append(after.best)
        self.drafted += 1

    def read(self, with_window: bool) -> list[Reading]:
        """Every verifier's tokenization of the response (and the window); its ids are made to follow."""
        window = b"".join(drafted.bytes for drafted in self.window) if with_window else b""
        readings = []
        for transcript, context in zip(self.transcripts, self.contexts[1:], strict=True):
            reading = transcript.read(self.response, window)
            context.rewrite(context.prompt_length + transcript.settled_ids, reading.ids)
            transcript.settle(self.response, reading)
            readings.append(reading)
        return readings

    def accept(self, verdicts: Sequence[Verdict | None]) -> None:
        """Move the first tokens of the window into the response as drafted."""
        for verdict, drafted in zip(verdicts, self.window, strict=False):
            self._write(_Written(drafted.token, verdict))
        del self.window[: len(verdicts)]

    def replace(self, symbol: Symbol, trace: VoteTrace | None) -> None:
        """Write the chosen symbol in place of the first token of the window. If it is what was drafted, the rest of
        the window stays valid; otherwise it is dropped."""
        drafted = self.window.pop(0)
        if symbol == drafted.symbol:
            self._write(_Written(drafted.token, Verdict.ENSEMBLED, False, trace))
            return
        self.window.clear()
        first, *rest = [self.eos_id] if symbol == EOS else self.spell(symbol)
        self.contexts[0].rewrite(self.contexts[0].prompt_length + len(self.written), [first, *rest])
        self._write(_Written(first, Verdict.ENSEMBLED, True, trace))
        for token in rest:  # these start inside the symbol, which is no boundary of the model that named it
            self._write(_Written(token, Verdict.OOV))

    def _write(self, written: _Written) -> None:
        self.written.append(written)
        self.response += self.vocabulary.bytes_of(written.token)


class Decoder:
    """Decodes questions with one drafter and any number of verifiers, `config.batch_size` answers at a time."""

    def __init__(self, models: Sequence[LM], config: SafeConfig):
        self.models = models if config.ensemble else models[:1]
        self.config = config
        self.drafter, self.verifiers = self.models[0], self.models[1:]
        self.weights = config.weights_for(len(self.models))
        self.voter = Voter(self.models, config)
        self.gate = config.gac_gate if config.ensemble_type == "gac" else None
        self.every = config.schedule == "every"
        # alone, or where the verifiers do not look ahead, a window of more than one token would be thrown away
        gamma = config.gamma if self.verifiers and not self.every else 1
        self.fixed_gamma = None if gamma == "auto" else gamma
        self.prices = _prices(self.models)

    def generate(self, questions: Iterable[str]) -> Iterator[tuple[int, Answer]]:
        """Yield (index of the question, its answer), in order of finishing; a free place takes the next question."""
        waiting = enumerate(questions)
        drafts: list[Draft] = []
        try:
            while True:
                while len(drafts) < self.config.batch_size and (question := next(waiting, None)) is not None:
                    draft = self._begin(*question)
                    if isinstance(draft, Answer):
                        yield question[0], draft
                    else:
                        drafts.append(draft)
                if not drafts:
                    return
                with _clock(drafts, "total"):
                    self._cycle(drafts)
                for place in reversed(range(len(drafts))):
                    if reason := self._finish_reason(drafts[place]):
                        draft = self._remove(drafts, place)
                        yield draft.number, self._answer(draft, reason)
        finally:
            while drafts:
                self._remove(drafts, len(drafts) - 1)

    def _cycle(self, drafts: list[Draft]) -> None:
        """One cycle of Algorithm 1 for every answer in flight."""
        with _clock(drafts, "draft"):
            self._draft(drafts)
        if not self.verifiers:
            for draft in drafts:
                draft.accept([None] * len(draft.window))
            return
        with _clock(drafts, "tokenize"):
            lookups = [self._look_up(draft) for draft in drafts]
        with _clock(drafts, "verify"):
            views = self._verify(drafts, lookups)
            verdicts = [self._verdicts(draft, seen) for draft, seen in zip(drafts, views, strict=True)]
        with _clock(drafts, "ensemble"):
            for draft, accepted, seen in zip(drafts, verdicts, views, strict=True):
                draft.accept(accepted)
                contested = len(accepted) < len(seen)
                changed = contested and self._ensemble(draft, seen[len(accepted)])
                draft.lookahead.saw(len(accepted), contested, changed)

    def _draft(self, drafts: list[Draft]) -> None:
        """The drafter extends every window to gamma tokens, one forward pass a token for all of them."""
        while short := [draft for draft in drafts if not draft.window_is_full]:
            contexts = [draft.contexts[0] for draft in short]
            rows = self.drafter.read(contexts, [[len(context.ids)] for context in contexts]).lists()
            for draft, (after,) in zip(short, rows, strict=True):
                draft.propose(after)

    def _look_up(self, draft: Draft) -> "_Lookup":
        """Tokenize for every verifier and find the places of the window where it has a say."""
        if not self.every:
            readings = draft.read(with_window=True)
            return _Lookup(readings, shared_starts(draft.window, len(draft.response), readings))
        if self._passes_gate(draft.window[0]):
            return _Lookup([], {})
        readings = draft.read(with_window=False)
        return _Lookup(readings, {0: [reading.end for reading in readings]})

    def _verify(self, drafts: list[Draft], lookups: list["_Lookup"]) -> list[list[list[View] | None]]:
        """One forward pass of each verifier: its view of every token of each window, None where it has none."""
        asked = [(draft, lookup) for draft, lookup in zip(drafts, lookups, strict=True) if lookup.places]
        passes = []  # all are under way before the first is waited for: verifiers on other devices run together
        for v, model in enumerate(self.verifiers):
            contexts = [draft.contexts[v + 1] for draft, _ in asked]
            positions = [
                [context.prompt_length + index[v] for index in lookup.places.values()]
                for context, (_, lookup) in zip(contexts, asked, strict=True)
            ]
            passes.append(model.read(contexts, positions) if asked else None)
        rows = [under_way.lists() for under_way in passes if under_way is not None]
        found = {}
        for n, (draft, lookup) in enumerate(asked):
            views = found[draft.number] = [None] * len(draft.window)
            for m, (j, indices) in enumerate(lookup.places.items()):
                views[j] = [
                    View(self._own(v, lookup.readings[v], index, draft.window[j]), rows[v][n][m])
                    for v, index in enumerate(indices)
                ]
        return [found.get(draft.number, [None] * len(draft.window)) for draft in drafts]

    def _own(self, v: int, reading: Reading, index: int, drafted: Drafted) -> Symbol | None:
        """a_v: the verifier's own token where the drafted one starts (EOS if that is EOS)."""
        if drafted.symbol == EOS or self.every:
            return drafted.symbol
        return self.verifiers[v].vocabulary.symbols[reading.ids[index - reading.first]]

    def _verdicts(self, draft: Draft, views: list[list[View] | None]) -> list[Verdict]:
        """The verdicts on the tokens of a window before the first that must be ensembled."""
        if self.every:
            return [Verdict.GATED] if views[0] is None else []
        judged = (judge(t, seen, self.weights, self.gate) for t, seen in zip(draft.window, views, strict=True))
        return list(takewhile(lambda verdict: verdict is not None, judged))

    def _passes_gate(self, drafted: Drafted) -> bool:
        sure = self.gate is not None and drafted.symbol is not None
        return sure and drafted.after.prob(drafted.symbol) >= self.gate

    def _ensemble(self, draft: Draft, views: list[View]) -> bool:
        """Replace the first token of the window by the best symbol of the ensemble; whether that is another."""
        drafted = draft.window[0]
        rows = [drafted.after, *(view.after for view in views)]
        vote = self.voter.vote(rows)
        if vote is None:
            draft.accept([Verdict.OOV])
            return False
        draft.replace(vote.best, trace_vote(drafted, rows, vote) if self.config.trace else None)
        return vote.best != drafted.symbol

    def _begin(self, number: int, question: str) -> Draft | Answer:
        """Open a place for a question in every model; an empty answer if its prompt fills some model's context."""
        prompts = [model.prompt_ids(question) for model in self.models]
        lookahead = Lookahead(self.fixed_gamma, self.prices)
        if any(lacks_room(model, len(ids), lookahead.gamma) for model, ids in zip(self.models, prompts, strict=True)):
            nothing = dict.fromkeys((*Verdict, "changed"), 0)
            return Answer("", (), "context", nothing, (0,) * len(prompts), 0, dict.fromkeys(PARTS, 0.0))
        contexts = [model.open(ids) for model, ids in zip(self.models, prompts, strict=True)]
        return Draft(number, contexts, self.models, lookahead)

    def _finish_reason(self, draft: Draft) -> str | None:
        """None while an answer goes on."""
        if len(draft.written) >= self.config.max_new_tokens:
            return "eos" if draft.ended and len(draft.written) == self.config.max_new_tokens else "length"
        if draft.ended:
            return "eos"
        sizes = zip(self.models, draft.contexts, strict=True)
        full = any(lacks_room(model, len(context.ids), draft.lookahead.gamma) for model, context in sizes)
        return "length" if full else None

    def _remove(self, drafts: list[Draft], place: int) -> Draft:
        """Take an answer out; as in the caches, the last one moves into its place."""
        draft = drafts[place]
        drafts[place] = drafts[-1]
        drafts.pop()
        for model, context in zip(self.models, draft.contexts, strict=True):
            model.close(context)
        return draft

    def _answer(self, draft: Draft, reason: str) -> Answer:
        written = draft.written[: self.config.max_new_tokens]
        ids = tuple(token.token for token in written)
        count = Counter(token.verdict for token in written)
        verdicts = {str(verdict): count[verdict] for verdict in Verdict}
        verdicts["changed"] = sum(token.changed for token in written)
        symbols = map(self.drafter.vocabulary.bytes_of, ids)
        trace = (TokenTrace(w.token, b, w.verdict, w.changed, w.vote) for w, b in zip(written, symbols, strict=True))
        return Answer(
            text=self.drafter.vocabulary.join(ids).decode(errors="replace"),
            token_ids=ids,
            finish_reason=reason,
            verdicts=verdicts,
            forward_passes=tuple(context.passes for context in draft.contexts),
            drafted=draft.drafted,
            seconds=draft.seconds,
            trace=tuple(trace) if self.config.trace else None,
        )


@dataclass(frozen=True)
class _Lookup:
    """readings: one per verifier. places: index in the window -> index in each reading where the verifier has a say."""

    readings: list[Reading]
    places: dict[int, list[int]]


def generate(models: Sequence[LM], questions: Iterable[str], config: SafeConfig) -> Iterator[tuple[int, Answer]]:
    """Answer questions (user messages): (index of the question, answer), in order of finishing."""
    return Decoder(models, config).generate(questions)


def lacks_room(model: LM, ids: int, gamma: int) -> bool:
    """Whether a model that holds so many ids cannot take a whole window more."""
    return model.max_context is not None and ids + gamma > model.max_context


def _prices(models: Sequence[LM]) -> Prices:
    """What the verifiers cost beside the drafter, by their size: a pass of a few tokens reads all weights once; on a
    CPU it also computes for each token."""
    drafter, *verifiers = [model.model.num_parameters() for model in models]
    verify = sum(verifiers) / drafter
    return Prices(verify, verify * (CPU_TOKEN_PRICE if models[0].device.type == "cpu" else 0.0))


@contextmanager
def _clock(drafts: Sequence[Draft], part: str):
    """Add the time of a block to the answers in flight, the same share to each."""
    start = time.perf_counter()
    yield
    share = (time.perf_counter() - start) / len(drafts)
    for draft in drafts:
        draft.seconds[part] += share
