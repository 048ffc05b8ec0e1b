"""The models of a run: what they are asked for, whatever decodes."""

import resource
from collections.abc import Iterator, Sequence
from dataclasses import replace

import huggingface_hub
import torch
from transformers.utils import logging

from cli.flags import Models
from cli.ranks import Ranks
from safe.config import SafeConfig
from safe.decode import Answer
from safe.fit import generate_that_fits
from safe.lm import LM
from safe.loading import load_models


class Engine:
    """Models that answer with SAFE. Raises ModelError or TokenizerError where they cannot."""

    def __init__(self, models: Models, config: SafeConfig, ranks: Ranks):
        count = len(models.paths) if config.ensemble else 1
        self.paths, self.config = models.paths[:count], config
        self.options = [replace(option, device=_own(option.device, ranks)) for option in models.options[:count]]
        self.quiet = not ranks.is_main
        self.lms: list[LM] = []

    def load(self) -> None:
        """Read all tokenizers, then all weights."""
        logging.disable_progress_bar()
        huggingface_hub.logging.set_verbosity_error()  # what it retries; what fails in the end is said in one line
        for path, option in zip(self.paths, self.options, strict=True) if not self.quiet else ():
            code = ", and run the code that comes with it" if option.trust_remote_code else ""
            print(f"loading {path} ({option.dtype}, {option.device}){code}", flush=True)  # stderr is for what is wrong
        self.lms = load_models(self.paths, self.options, rows=self.config.batch_size)

    def answers(self, prompts: Sequence[str]) -> Iterator[tuple[int, Answer]]:
        """(index of the prompt, its answer), in order of finishing."""
        return generate_that_fits(self.lms, prompts, self.config)

    def peak_memory(self) -> int:
        """Bytes: the most that was allocated on the CUDA devices together, or resident if there are none."""
        devices = {p.device for lm in self.lms for p in lm.model.parameters() if p.device.type == "cuda"}
        if devices:
            return sum(torch.cuda.max_memory_allocated(device) for device in devices)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _own(device: str | None, ranks: Ranks) -> str | None:
    """Of several processes on one machine each takes a CUDA device of its own, where none is named by number."""
    if device == "cuda" and ranks.world > 1:
        return f"cuda:{ranks.local % torch.cuda.device_count()}"
    return device
