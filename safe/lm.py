"""A language model with its ids and its one KV cache; the only file that runs a model.

`LM.read` is the one verb: bring the cache of some answers up to their ids (what they share with it is not run again)
and give the next-token distributions at the positions asked for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ensemble.tokens import EOS, Symbol, Vocabulary
from safe.cache import SlotCache
from safe.peaks import best, block_maxima, top_k
from safe.reader import Reader

CHUNK = 1024  # tokens of a prompt in one forward pass: bounds the memory of activations
CATCH_UP = 16  # an answer further behind is brought up alone, so that the others are not padded to it


class ModelError(ValueError):
    """A model that cannot be loaded or does not compute; the message names it and says what to do."""


class NextToken:
    """One model's next-token distribution at one position; nothing is computed before it is asked for.

    logits: (V,) float32, on the model's device. best: id of the highest logit. maxima: of the blocks of the logits, if
    there are some.
    """

    __slots__ = ("_log_norm", "best", "logits", "maxima", "model")

    def __init__(self, model: "LM", logits: Tensor, best: int, maxima: Tensor | None = None):
        self.model, self.logits, self.best, self.maxima = model, logits, best, maxima
        self._log_norm: float | None = None

    @property
    def best_symbol(self) -> Symbol | None:
        return self.model.vocabulary.symbols[self.best]

    def distribution(self) -> Tensor:
        """The whole softmax: (V,)."""
        return torch.softmax(self.logits, 0)

    def probs(self, ids: Sequence[int]) -> list[float]:
        """The probabilities of some ids, on the host."""
        if self._log_norm is None:
            self._log_norm = float(torch.logsumexp(self.logits, 0))
        logits = self.logits.index_select(0, self.model.index(ids)).tolist()
        return [math.exp(logit - self._log_norm) for logit in logits]

    def prob(self, symbol: Symbol) -> float:
        """The probability of a symbol: the sum over its ids; 0 if the model lacks it."""
        ids = self.model.vocabulary.ids_of.get(symbol, ())
        return sum(self.probs(ids)) if ids else 0.0

    def top_ids(self, k: int) -> list[int]:
        """The k most probable ids by falling probability, of equals the lowest first."""
        values, ids = top_k(self.logits, min(k, len(self.logits)), self.maxima)
        return [token for _, token in sorted(zip((-value for value in values), ids, strict=True))]


def common_prefix(ids: Sequence[int], others: Sequence[int]) -> int:
    """How many ids two sequences begin with alike."""
    pairs = zip(ids, others, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(ids), len(others)))


@dataclass
class Context:
    """One model's ids for one answer: its prompt and the response as it reads it. The cache row of the answer holds
    the first `held` of them; nothing else may change either."""

    ids: list[int]
    row: int
    held: int = 0
    passes: int = 0
    prompt_length: int = field(init=False)

    def __post_init__(self):
        self.prompt_length = len(self.ids)

    def rewrite(self, start: int, ids: Sequence[int]) -> None:
        """Replace the ids from `start` on. The longest common prefix with what was there stays in the cache."""
        self.held = min(self.held, start + common_prefix(self.ids[start:], ids))
        self.ids[start:] = ids


class LM:
    """A causal language model, its tokenizer's Vocabulary and Reader, and one cache with `rows` rows.

    prompt_ids: function from a user message to the ids of its prompt. default_eos: the id written when the answer
    is to end. max_context: positions the model can address, or None. revision: the commit of a model from the Hub.
    """

    def __init__(self, name, model: PreTrainedModel, vocabulary: Vocabulary, reader: Reader, prompt_ids, default_eos):
        self.name, self.model, self.vocabulary, self.reader = name, model, vocabulary, reader
        self.prompt_ids, self.default_eos = prompt_ids, default_eos
        self.device = model.get_input_embeddings().weight.device
        self.config = model.config.get_text_config(decoder=True)
        self.revision: str | None = getattr(model.config, "_commit_hash", None)
        self.max_context: int | None = getattr(self.config, "max_position_embeddings", None)
        self.contexts: list[Context] = []
        self.reserve(1)

    def reserve(self, rows: int) -> None:
        """Make a new, empty cache for up to `rows` answers in flight."""
        assert not self.contexts, "answers are still in flight"
        self.cache = SlotCache(rows)
        self.left = [[] for _ in range(rows)]  # what ended answers have left in each row

    def open(self, prompt: Sequence[int]) -> Context:
        """Begin an answer: a free row of the cache and the ids of its prompt.

        What the prompt shares with the answer that was there before (worked examples, a chat template) is kept."""
        assert len(self.contexts) < self.cache.rows and prompt
        row = len(self.contexts)
        context = Context(list(prompt), row, held=common_prefix(self.left[row], prompt))
        self.contexts.append(context)
        return context

    def close(self, context: Context) -> None:
        """End an answer; the last row moves into the one that is free now, so that rows in use stay together."""
        last = self.contexts.pop()
        self.left[last.row] = last.ids[: last.held]
        if last is not context:
            if last.held:
                self.cache.move_row(last.row, context.row, last.held)
            last.row = context.row
            self.contexts[context.row] = last

    @torch.inference_mode()
    def read(self, contexts: Sequence[Context], positions: Sequence[Sequence[int]]) -> "Rows":
        """The next-token distributions after the first p ids of each context, for its rising positions p >= 1.

        One forward pass over what the caches lack (prompts in chunks). The result is on the model's device; nothing
        waits for it before `Rows.lists`.
        """
        for context, wanted in zip(contexts, positions, strict=True):
            context.held = min(context.held, wanted[0] - 1)
            self._catch_up(context, wanted[0] - 1, CHUNK if len(contexts) == 1 else CATCH_UP)
            context.passes += 1
        logits = self._run_one(contexts[0], positions[0]) if len(contexts) == 1 else self._run_all(contexts, positions)
        return Rows(self, logits.float(), [len(wanted) for wanted in positions])

    def index(self, ids: Sequence[int]) -> Tensor:
        """Ids as an index tensor on the device of the logits."""
        return torch.tensor(ids, device=self.device)

    def _catch_up(self, context: Context, end: int, limit: int) -> None:
        """Run a context alone, a chunk a pass, while it lacks more than `limit` ids before `end`."""
        while end - context.held > limit:
            stop = min(context.held + CHUNK, end)
            self._forward_one(context, stop, 1)
            context.passes += 1

    def _run_one(self, context: Context, positions: Sequence[int]) -> Tensor:
        first = context.held
        keep = [p - 1 - first for p in positions]
        length = positions[-1] - first
        tail = len(keep) if keep == list(range(length - len(keep), length)) else self.index(keep)
        return self._forward_one(context, positions[-1], tail)[0]

    def _forward_one(self, context: Context, stop: int, keep: int | Tensor) -> Tensor:
        """One row, from what it holds up to `stop`; logits (1, kept positions, V)."""
        ids = self.index([context.ids[context.held : stop]])
        self.cache.place_one(context.row, context.held, ids.shape[1])
        logits = self.model(input_ids=ids, cache=self.cache, use_cache=True, logits_to_keep=keep).logits
        context.held = stop
        return logits

    def _run_all(self, contexts: Sequence[Context], positions: Sequence[Sequence[int]]) -> Tensor:
        """All rows in one pass, each from what it holds; rows that want nothing pass along a token nobody looks at.

        logits (all positions of all contexts in order of their rows, V)."""
        stops = {context.row: wanted[-1] for context, wanted in zip(contexts, positions, strict=True)}
        news = [c.ids[c.held : stops[c.row]] if c.row in stops else [] for c in self.contexts]
        length = max(map(len, news))
        ids = self.index([new + [0] * (length - len(new)) for new in news])
        at = self.cache.place_all([context.held for context in self.contexts], length, self.device)
        keep = torch.zeros(ids.shape, dtype=torch.bool)
        for context, wanted in zip(contexts, positions, strict=True):
            keep[context.row, [p - 1 - context.held for p in wanted]] = True
        logits = self.model(
            input_ids=ids, position_ids=at, attention_mask=self._masks(), cache=self.cache, use_cache=True,
            logits_to_keep=keep.to(self.device),
        ).logits  # fmt: skip
        for context in contexts:
            context.held = stops[context.row]
        return logits

    def _masks(self) -> Tensor | dict[str, Tensor]:
        """What the placed rows see, as the model wants it: one mask, or one for each type of layer."""
        window = getattr(self.config, "sliding_window", None)
        types = getattr(self.config, "layer_types", None)
        if types is None:
            return self._mask(window)
        return {kind: self._mask(window if kind == "sliding_attention" else None) for kind in set(types)}

    def _mask(self, window: int | None) -> Tensor:
        seen = self.cache.visible(window)
        if self.config._attn_implementation != "eager":
            return seen
        dtype = self.model.dtype
        return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill(~seen, torch.finfo(dtype).min)

    @cached_property
    def eos_symbol_ids(self) -> frozenset[int]:
        """The ids that end an answer."""
        return frozenset(self.vocabulary.ids_of.get(EOS, ()))


class Rows:
    """The logits that one `read` computed, still on the device: (n, V), `counts` of them for each context."""

    def __init__(self, model: LM, logits: Tensor, counts: list[int]):
        self.model, self.logits, self.counts = model, logits, counts
        self.maxima = block_maxima(logits)
        self._peaks = best(logits, self.maxima)

    def lists(self) -> list[list[NextToken]]:
        """One list of distributions a context. Raises ModelError if a logit is not finite."""
        peaks, ids = self._peaks
        # one transfer for both: an id below 2**53 is exact in float64
        values, best_ids = torch.stack([peaks.double(), ids.double()]).tolist()
        if not all(map(math.isfinite, values)):
            raise ModelError(
                f"{self.model.name}: logits are not finite; a float16 model with eager attention overflows: "
                "try --dtype bfloat16 or float32, or --attn_implementation sdpa"
            )
        maxima = [None] * len(best_ids) if self.maxima is None else self.maxima
        each = zip(self.logits, best_ids, maxima, strict=True)
        rows = [NextToken(self.model, logits, int(i), blocks) for logits, i, blocks in each]
        ends = [sum(self.counts[: i + 1]) for i in range(len(self.counts))]
        return [rows[end - count : end] for end, count in zip(ends, self.counts, strict=True)]

