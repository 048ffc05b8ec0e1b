"""SIGINT and SIGTERM end a run at once, except while a finished answer is being written: then right after it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(BaseException):
    """A signal asked the run to end; number is the signal's. Not an Exception: nothing on the way may swallow it."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


class StopSignals:
    """While it is on, the signals raise Stopped."""

    def __init__(self):
        self._shielded, self._pending = False, None

    @contextmanager
    def on(self) -> Iterator["StopSignals"]:
        """Listen, and put the old handlers back in the end."""
        before = {number: signal.signal(number, self._heard) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def shield(self) -> Iterator[None]:
        """A signal heard inside takes effect at the end."""
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False
        if self._pending is not None:
            raise Stopped(self._pending)

    def _heard(self, number: int, frame) -> None:
        if not self._shielded:
            raise Stopped(number)
        self._pending = number
