"""Decoding with as many answers in flight as fit into memory."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from safe.config import SafeConfig
from safe.decode import Answer, generate
from safe.lm import LM, ModelError


def generate_that_fits(
    models: Sequence[LM], questions: Sequence[str], config: SafeConfig
) -> Iterator[tuple[int, Answer]]:
    """As `generate`; where a CUDA device runs out of memory the batch is halved, and the answers that were in flight
    are begun again. Raises ModelError if not even one answer fits."""
    left = list(range(len(questions)))
    while left:
        asked = tuple(left)
        for model in models:
            model.reserve(config.batch_size)
        try:
            for index, answer in generate(models, [questions[i] for i in asked], config):
                left.remove(asked[index])
                yield asked[index], answer
        except torch.OutOfMemoryError as error:
            if config.batch_size == 1:
                raise ModelError(
                    f"out of memory with one answer in flight: {error}; use --dtype or --device"
                ) from error
            config = replace(config, batch_size=config.batch_size // 2)
            for model in models:
                model.reserve(1)  # lets go of the large cache before memory is asked for again
            torch.cuda.empty_cache()
