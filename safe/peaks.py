"""The highest of many logits, found through the highest of each block of them.

Over a large vocabulary the maxima of blocks cost a fraction of an argmax. They are taken once for every position; the
best id and, where it comes to a vote, the k best are then looked for in a few blocks only.
"""

import torch
from torch import Tensor

BLOCK = 256
WORTH_IT = 32 * BLOCK  # logits; fewer are searched as they are


def block_maxima(logits: Tensor) -> Tensor | None:
    """The highest logit of each whole block: (n, V) -> (n, V // BLOCK); None for a small vocabulary."""
    n, size = logits.shape
    if size < WORTH_IT:
        return None
    return _body(logits).amax(-1)


def best(logits: Tensor, maxima: Tensor | None) -> tuple[Tensor, Tensor]:
    """The highest logit of each row and its id, of equals the lowest: (n, V) -> (n,), (n,)."""
    if maxima is None:
        return logits.amax(-1), logits.argmax(-1)
    values, blocks = maxima.amax(-1), maxima.argmax(-1)
    body = _body(logits)
    ids = blocks * BLOCK + body[torch.arange(len(body), device=body.device), blocks].argmax(-1)
    rest = logits[:, body.shape[1] * BLOCK :]
    if not rest.shape[1]:
        return values, ids
    last, places = rest.amax(-1), rest.argmax(-1)
    # where one of the two is no number, the other is not taken for the highest
    ids = torch.where(last > values, places + body.shape[1] * BLOCK, ids)
    return torch.maximum(values, last), ids


def top_k(logits: Tensor, k: int, maxima: Tensor | None) -> tuple[list[float], list[int]]:
    """The k highest of (V,) logits and their ids; maxima: those of its blocks (V // BLOCK,).

    They lie in the k blocks with the highest maxima, or behind the last block."""
    if maxima is None or len(maxima) <= 2 * k:
        values, ids = torch.topk(logits, k)
        return values.tolist(), ids.tolist()
    body = _body(logits[None])[0]
    chosen = torch.topk(maxima, k).indices
    values, places = torch.cat([body.index_select(0, chosen).flatten(), logits[len(body) * BLOCK :]]).topk(k)
    firsts = [block * BLOCK for block in chosen.tolist()]
    to_rest = (len(body) - k) * BLOCK
    ids = [firsts[i // BLOCK] + i % BLOCK if i < k * BLOCK else i + to_rest for i in places.tolist()]
    return values.tolist(), ids


def _body(logits: Tensor) -> Tensor:
    """The whole blocks: (n, V) -> (n, V // BLOCK, BLOCK)."""
    n, size = logits.shape
    return logits[:, : size // BLOCK * BLOCK].view(n, size // BLOCK, BLOCK)
