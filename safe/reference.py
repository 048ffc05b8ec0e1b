"""The slow twin: SAFE as SPEC 3-5 says it, with no cache, no batch, nothing kept from one step to the next.

Read this file first. Every distribution is a forward pass over all ids, every tokenization starts from the beginning,
probabilities are dictionaries from symbols to floats. The fast path must give the same ids and verdicts.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import torch

from ensemble.tokens import EOS, Symbol
from safe.config import SafeConfig
from safe.lm import LM
from safe.verify import Verdict

Distribution = dict[Symbol, float]


@dataclass
class Response:
    """What has been written: the drafter's ids, and why each of them stands there."""

    ids: list[int] = field(default_factory=list)
    verdicts: list[Verdict | None] = field(default_factory=list)
    changed: int = 0

    def add(self, token: int, verdict: Verdict | None) -> None:
        self.ids.append(token)
        self.verdicts.append(verdict)


def decode(models: list[LM], question: str, config: SafeConfig) -> Response:
    """Answer one question; response.ids holds at most max_new_tokens ids, with one verdict each."""
    models = models if config.ensemble else models[:1]
    prompts = [model.prompt_ids(question) for model in models]
    response = Response()
    while not finished(models[0], response, config):
        if len(models) == 1:
            response.add(best_id(models[0], prompts[0]), None)
            prompts[0] = prompts[0] + response.ids[-1:]
        elif config.schedule == "every":
            every_token(models, prompts, response, config)
        else:
            one_cycle(models, prompts, response, config)
    n = config.max_new_tokens
    return Response(response.ids[:n], response.verdicts[:n], response.changed)


def one_cycle(models: list[LM], prompts: list[list[int]], response: Response, config: SafeConfig) -> None:
    """Draft a window, accept up to the first token that needs ensembling, ensemble that one."""
    drafter, verifiers = models[0], models[1:]
    window = draft_window(drafter, prompts[0] + response.ids, config.gamma)
    text = drafter.vocabulary.join(response.ids + window)
    for token in window:
        before = prompts[0] + response.ids
        offset = len(drafter.vocabulary.join(response.ids))
        symbol = drafter.vocabulary.symbols[token]
        own, prefixes = [], []
        for model, prompt in zip(verifiers, prompts[1:], strict=True):
            reading = model.reader.read(text)
            if symbol == EOS and reading.complete:
                own.append(EOS)
                prefixes.append(prompt + reading.ids)
            elif isinstance(symbol, bytes) and offset in reading.starts:
                k = reading.starts[offset]
                own.append(model.vocabulary.symbols[reading.ids[k]])
                prefixes.append(prompt + reading.ids[:k])
        if len(own) < len(verifiers):
            response.add(token, Verdict.OOV)
            continue
        rows = [logits(m, ids) for m, ids in zip(models, [before, *prefixes], strict=True)]
        dists = [distribution(m, row) for m, row in zip(models, rows, strict=True)]
        verdict = judge(models, rows, dists, [symbol, *own], config)
        if verdict is None:
            replace(models, response, token, rows, dists, config)
            return
        response.add(token, verdict)


def every_token(models: list[LM], prompts: list[list[int]], response: Response, config: SafeConfig) -> None:
    """The baseline: ensemble the next token whatever the tokenizations (GaC: below its gate)."""
    text = models[0].vocabulary.join(response.ids)
    texts = [response.ids, *(model.reader.read(text).ids for model in models[1:])]
    rows = [logits(m, prompt + ids) for m, prompt, ids in zip(models, prompts, texts, strict=True)]
    dists = [distribution(m, row) for m, row in zip(models, rows, strict=True)]
    token = int(rows[0].argmax())
    if config.ensemble_type == "gac" and dists[0].get(models[0].vocabulary.symbols[token], 0) >= config.gac_gate:
        response.add(token, Verdict.GATED)
    else:
        replace(models, response, token, rows, dists, config)


def draft_window(drafter: LM, ids: list[int], gamma: int) -> list[int]:
    """gamma greedy tokens, fewer only if the answer ends."""
    window: list[int] = []
    while len(window) < gamma and not (window and drafter.vocabulary.symbols[window[-1]] == EOS):
        window.append(best_id(drafter, ids + window))
    return window


def judge(models, rows, dists: list[Distribution], tokens: list[Symbol], config: SafeConfig) -> Verdict | None:
    """tokens: t_j and every a_v."""
    bests = [model.vocabulary.symbols[int(row.argmax())] for model, row in zip(models, rows, strict=True)]
    if all(a == best and a is not None for a, best in zip(tokens[1:], bests[1:], strict=True)):
        return Verdict.UNANIMOUS
    probs = [dist.get(token, 0.0) for dist, token in zip(dists, tokens, strict=True)]
    if sum(w * p for w, p in zip(config.weights_for(len(models)), probs, strict=True)) > 0.5:
        return Verdict.CONFIDENT
    if config.ensemble_type == "gac" and probs[0] >= config.gac_gate:
        return Verdict.GATED
    return None


def replace(models, response: Response, token: int, rows, dists: list[Distribution], config: SafeConfig) -> None:
    """Ensemble, sharpen, and write the best symbol instead of the drafted token."""
    drafter = models[0]
    symbol = drafter.vocabulary.symbols[token]
    union, masses = (gac if config.ensemble_type == "gac" else unite)(models, rows, dists, config)
    if not union:
        response.add(token, Verdict.OOV)
        return
    probs = sharpen(union, masses, models, rows, config)
    best = max(union, key=lambda u: probs[u])  # the first of equals
    if best == symbol:
        response.add(token, Verdict.ENSEMBLED)
        return
    response.changed += len(response.ids) < config.max_new_tokens
    first, *rest = [drafter.default_eos] if best == EOS else drafter.reader.spell(best)
    response.add(first, Verdict.ENSEMBLED)
    for continuation in rest:
        response.add(continuation, Verdict.OOV)


def unite(models, rows, dists: list[Distribution], config: SafeConfig) -> tuple[list[Symbol], list[Distribution]]:
    """The union of every model's top-k symbols, and each model's mass of them, normalised."""
    union: list[Symbol] = []
    for model, row in zip(models, rows, strict=True):
        for symbol in top_symbols(model, row, config.top_k):
            if symbol not in union:
                union.append(symbol)
    masses = []
    for model, dist in zip(models, dists, strict=True):
        mass = {u: dist[u] for u in union if u in dist}
        counted = set(mass)
        for u in union:
            if u not in mass:
                piece = model.reader.first_piece(u)
                mass[u] = 0.0 if piece is None or piece in counted else dist[piece]
                counted.add(piece)
        total = sum(mass.values())
        masses.append({u: p / total if total else 0.0 for u, p in mass.items()})
    return union, masses


def gac(models, rows, dists: list[Distribution], config: SafeConfig) -> tuple[list[Symbol], list[Distribution]]:
    """The union of all vocabularies, the drafter's symbols first; a model gives 0 to what it lacks."""
    union = list(dict.fromkeys(s for model in models for s in model.vocabulary.symbols if s is not None))
    return union, [{u: dist.get(u, 0.0) for u in union} for dist in dists]


def sharpen(union: list[Symbol], masses: list[Distribution], models, rows, config: SafeConfig) -> Distribution:
    """The (weighted) mean of the masses, sharpened where its best symbol has less than half."""
    weights = config.weights_for(len(masses))
    mean = {u: sum(w * mass[u] for w, mass in zip(weights, masses, strict=True)) for u in union}
    if max(mean.values()) >= 0.5 or config.sharpen_type == "none":
        return mean
    if config.sharpen_type == "geom":
        product = {u: 1.0 for u in union}
        for w, mass in zip(weights, masses, strict=True):
            product = {u: p * mass[u] ** w for u, p in product.items()}
        return product if max(product.values()) > 0 else mean
    own = (
        models[0].vocabulary.symbols if config.ensemble_type == "gac" else top_symbols(models[0], rows[0], config.top_k)
    )
    result = dict(mean)
    for head in {symbol for symbol in own if isinstance(symbol, bytes)}:
        if mean[head] > config.sharpen_lambda and not blank(head):
            result[head] += sum(mean[u] for u in union if isinstance(u, bytes) and u != head and u.startswith(head))
    return result


def logits(model: LM, ids: list[int]) -> torch.Tensor:
    """The next-token logits (V,) after all ids, float32, by a forward pass without any cache."""
    with torch.inference_mode():
        return (
            model.model(torch.tensor([ids], device=model.device), use_cache=False, logits_to_keep=1)
            .logits[0, -1]
            .float()
        )


def best_id(model: LM, ids: list[int]) -> int:
    return int(logits(model, ids).argmax())


def distribution(model: LM, row: torch.Tensor) -> Distribution:
    """The softmax of logits, added up over the ids of each symbol."""
    result: Distribution = defaultdict(float)
    for symbol, p in zip(model.vocabulary.symbols, torch.softmax(row, 0).tolist(), strict=True):
        if symbol is not None:
            result[symbol] += p
    return dict(result)


def top_symbols(model: LM, row: torch.Tensor, k: int) -> list[Symbol]:
    """The symbols of the k most probable ids, of equals the lowest id first; ids without a symbol are left out."""
    values = row.tolist()
    ids = sorted(range(len(values)), key=lambda i: (-values[i], i))[:k]
    return [model.vocabulary.symbols[i] for i in ids if model.vocabulary.symbols[i] is not None]


def blank(symbol: bytes) -> bool:
    text = symbol.decode(errors="replace")
    return text.isspace() and "\ufffd" not in text


def finished(drafter: LM, response: Response, config: SafeConfig) -> bool:
    ended = bool(response.ids) and drafter.vocabulary.symbols[response.ids[-1]] == EOS
    return ended or len(response.ids) >= config.max_new_tokens
