"""Peak memory of this process, where the models are."""

import resource
from collections.abc import Sequence

import torch

from safe.lm import LM


def peak_memory(models: Sequence[LM]) -> int:
    """Bytes: the most that was allocated on the CUDA devices together, or resident if there are none."""
    devices = {p.device for model in models for p in model.model.parameters() if p.device.type == "cuda"}
    if devices:
        return sum(torch.cuda.max_memory_allocated(device) for device in devices)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
