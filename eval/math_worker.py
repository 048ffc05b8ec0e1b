"""math-verify behind a deadline: in a process of its own, because its parser can hang and its own alarm works in the
main thread only. As a program (`python -m eval.math_worker`) it is that process: JSON lines in, true or false out.
"""

import atexit
import json
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

DEADLINE = 5.0  # seconds for one comparison
START = 60.0  # seconds for the process to be ready
MEMORY = 4 * 2**30  # bytes of address space, so that a huge power cannot take the machine's
# what math-verify and sympy raise on what they cannot parse or compare
FAULTS = (ValueError, TypeError, AttributeError, RecursionError, ArithmeticError, NotImplementedError, MemoryError)
ROOT = Path(__file__).resolve().parent.parent


class _Worker:
    """The process, started when it is first needed, and again after it was killed."""

    def __init__(self):
        self.lock, self.process, self.answers, self.owner = threading.Lock(), None, queue.Queue(), os.getpid()

    def ask(self, gold: str, prediction: str) -> bool:
        with self.lock:
            if self.owner != os.getpid():  # a forked child has no part in its parent's process
                self.process, self.owner = None, os.getpid()
            if self.process is None or self.process.poll() is not None:
                self._start()
            try:
                self.process.stdin.write(json.dumps([gold, prediction]) + "\n")
                self.process.stdin.flush()
                answer = self.answers.get(timeout=DEADLINE)
            except (queue.Empty, BrokenPipeError):
                answer = None
            if answer is None:
                self.stop()
            return answer is True

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "eval.math_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            start_new_session=True,  # Ctrl-C is for the run, which may want an answer scored before it ends
        )
        self.answers = queue.Queue()
        threading.Thread(target=_pump, args=(self.process.stdout, self.answers), daemon=True).start()
        if self.answers.get(timeout=START) != "ready":
            self.stop()
            raise RuntimeError("math-verify cannot be loaded: pip install -r requirements.txt")

    def stop(self) -> None:
        if self.process is not None and self.owner == os.getpid():
            self.process.kill()
            with suppress(BrokenPipeError):  # a question that it will not read any more
                self.process.stdin.close()
            self.process.wait()
        self.process = None


def _pump(lines, answers: queue.Queue) -> None:
    with lines:
        for line in lines:
            answers.put(json.loads(line))
    answers.put(None)  # the process ended


_WORKER = _Worker()
atexit.register(_WORKER.stop)


def verify(*, gold: str, prediction: str) -> bool:
    """Whether math-verify finds two LaTeX answers equal, and, where both are numbers, they are to 45 digits.
    False if it takes longer than the deadline."""
    return _WORKER.ask(gold, prediction)


def _equal(gold: str, prediction: str) -> bool:
    from math_verify import parse
    from math_verify import verify as math_verify

    a, b = (parse(f"${text}$", parsing_timeout=None) for text in (gold, prediction))
    if not a or not b or not math_verify(a, b, timeout_seconds=None):
        return False
    return _exactly(a[0], b[0])


def _exactly(a, b) -> bool:
    """math-verify rounds numbers to six places; numbers have to agree far beyond that."""
    from sympy import Expr, N

    if not isinstance(a, Expr) or not isinstance(b, Expr) or a.free_symbols or b.free_symbols:
        return True
    left, right = N(a, 60), N(b, 60)
    return bool(abs(left - right) <= 10**-45 * max(abs(left), abs(right)))


def main() -> None:
    """Answer comparisons until stdin ends. A comparison that its asker no longer waits for ends the process."""
    for number in (signal.SIGINT, signal.SIGTERM):  # meant for the run, which may still be grading; it ends us itself
        signal.signal(number, signal.SIG_IGN)
    import math_verify  # noqa: F401 (what takes long is done before the first question)

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        signal.alarm(int(DEADLINE) + 2)
        try:
            equal = _equal(*json.loads(line))
        except FAULTS:
            equal = False  # what cannot be parsed or compared is not equal
        signal.alarm(0)
        print(json.dumps(equal), flush=True)


if __name__ == "__main__":
    main()
