"""This process among those of one `accelerate launch`; a process that was started alone needs none of it."""

import os
import time
from dataclasses import dataclass
from datetime import timedelta

POLL = 0.1  # seconds between looks at a barrier, so that a signal is heard while waiting


class RankError(ValueError):
    """Another process of the launch is gone."""


@dataclass(frozen=True)
class Ranks:
    """rank: of this process, 0 is the main one. world: how many there are. local: the rank on this machine."""

    rank: int = 0
    world: int = 1
    local: int = 0

    @classmethod
    def from_environment(cls) -> "Ranks":
        """What the launcher says; nothing is connected yet."""
        return cls(*(int(os.environ.get(name, default)) for name, default in
                     (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))))  # fmt: skip

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def connect(self) -> None:
        """Meet the others (gloo, also where the models are on CUDA: nothing but barriers goes between processes)."""
        if self.world == 1:
            return
        from accelerate import PartialState

        # ranks end at different times, in a long run hours apart
        PartialState(cpu=True, timeout=timedelta(days=30))

    def wait(self) -> None:
        """Until every process is here. Raises RankError if one of them has ended."""
        if self.world == 1:
            return
        import torch.distributed

        try:
            barrier = torch.distributed.barrier(async_op=True)
            while not barrier.is_completed():
                time.sleep(POLL)
            barrier.wait()
        except RuntimeError as error:
            raise RankError(
                "another process of this launch has ended; every finished line is kept, run the same command again"
            ) from error

    def disconnect(self) -> None:
        """Part from the others in order."""
        if self.world > 1:
            import torch.distributed

            torch.distributed.destroy_process_group()
