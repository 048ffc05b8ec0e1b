"""The KV cache of a model: one slot per position, a row per answer in flight.

A token at position p lies in slot p, so rolling back is only forgetting a number, at any depth, and what a query may
see follows from its position alone: keys at slots up to its own, for sliding-window layers no further back than the
window. Rows of different lengths need neither padding columns nor holes, and the layers of a sliding-window model are
kept whole (a cut one could not be rolled back past its window).
"""

from functools import partial

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

GROW_BY = 1024  # slots; a buffer that grows by a constant share of this size is copied rarely


class SlotCache(Cache):
    """Keys and values (rows, heads, slots, head_dim) of every layer. `place` before every forward pass says where its
    tokens go; slots that were never written hold zeros, and nobody looks at them."""

    def __init__(self, rows: int):
        super().__init__(layer_class_to_replicate=partial(_SlotLayer, self))
        self.rows = rows
        self.first_row, self.n_rows, self.starts, self.end = 0, 1, [0], 0
        self.positions: Tensor | None = None

    def place_one(self, row: int, start: int, length: int) -> None:
        """The next forward pass writes one row's slots start .. start + length."""
        self.first_row, self.n_rows, self.starts, self.end = row, 1, [start], start + length
        self.positions = None

    def place_all(self, starts: list[int], length: int, device: torch.device) -> Tensor:
        """The next forward pass writes `length` slots in each of the first len(starts) rows, from its own start on.

        Returns the positions (rows, length)."""
        self.first_row, self.n_rows, self.starts, self.end = 0, len(starts), starts, max(starts) + length
        self.positions = torch.tensor(starts, device=device)[:, None] + torch.arange(length, device=device)
        return self.positions

    def visible(self, window: int | None) -> Tensor:
        """Which slots the placed tokens may attend to: bool (rows, 1, length, slots)."""
        assert self.positions is not None, "only a pass over several rows needs its own mask"
        slots = torch.arange(self.end, device=self.positions.device)
        query = self.positions[:, None, :, None]
        seen = slots <= query
        return seen if window is None else seen & (slots > query - window)

    @torch.inference_mode()
    def move_row(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` slots of one row to another."""
        for layer in self.layers:
            layer.keys[target, :, :length] = layer.keys[source, :, :length]
            layer.values[target, :, :length] = layer.values[source, :, :length]

    def memory(self) -> int:
        """Bytes held by the buffers."""
        return sum(2 * layer.keys.nbytes for layer in self.layers)


class _SlotLayer(CacheLayerMixin):
    """One layer's buffers; where to write is told by the cache it belongs to."""

    is_sliding = False

    def __init__(self, cache: SlotCache):
        super().__init__()
        self.place = cache

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.keys = self._zeros(key_states, 0)
        self.values = self._zeros(value_states, 0)
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs) -> tuple[Tensor, Tensor]:
        """Write the new states (rows, heads, length, head_dim) and return all slots up to the last one written."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        if self.place.end > self.keys.shape[2]:
            slots = -(-self.place.end // GROW_BY) * GROW_BY
            self.keys = self._grown(self.keys, key_states, slots)
            self.values = self._grown(self.values, value_states, slots)
        return self._write(self.keys, key_states), self._write(self.values, value_states)

    def _write(self, buffer: Tensor, states: Tensor) -> Tensor:
        place = self.place
        rows = buffer[place.first_row : place.first_row + place.n_rows]
        if place.positions is None:
            rows[:, :, place.starts[0] : place.end] = states
        else:
            row_numbers = torch.arange(place.n_rows, device=states.device)[:, None]
            rows[row_numbers, :, place.positions] = states.transpose(1, 2)
        return rows[:, :, : place.end]

    def _zeros(self, like: Tensor, slots: int) -> Tensor:
        return like.new_zeros(self.place.rows, like.shape[1], slots, like.shape[3])

    def _grown(self, buffer: Tensor, like: Tensor, slots: int) -> Tensor:
        grown = self._zeros(like, slots)
        grown[:, :, : buffer.shape[2]] = buffer
        return grown

    def get_seq_length(self) -> int:
        """Where the placed tokens begin (of the first row; several rows bring their own positions and masks)."""
        return self.place.starts[0]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Number of slots that attention sees, and the first of them."""
        return self.place.starts[0] + query_length, 0

    def get_max_length(self) -> int:
        return -1
