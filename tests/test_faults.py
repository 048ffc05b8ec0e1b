"""What really happens to runs: killed, started twice, out of disk, spread over processes of which one dies. After each
the same command ends with the lines of a run that nothing happened to."""

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cli.flags import script_parser
from cli.main import main
from eval.records import OutputFolder
from tests.fake_engine import FakeEngine, flags, run_waiting

COUNT = 6
PATIENCE = 120  # seconds until a process that does not answer is a failure
LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.fake_engine"])


class Process:
    """A run in a process of its own, which waits before each answer for leave to give it."""

    def __init__(self, place: Path, *more: str, environment=None, bytes_a_file=None):
        self.place, self.environment = place, environment or {}
        self.connection, theirs = CONTEXT.Pipe()
        given = (theirs, place, COUNT, more, self.environment, bytes_a_file)
        self.process = CONTEXT.Process(target=run_waiting, args=given, daemon=True)
        self.process.start()
        theirs.close()

    def wait_for_question(self) -> "Process":
        assert self.connection.poll(PATIENCE), self.error
        self.connection.recv()
        return self

    def answer(self, count: int = 1) -> "Process":
        """Let it find so many answers; afterwards it is at the next one."""
        for _ in range(count):
            self.connection.send("one")
            self.wait_for_question()
        return self

    def let_go(self) -> "Process":
        """Let it find all the others."""
        self.connection.send("all")
        return self

    def kill(self, number: int = signal.SIGKILL) -> int:
        os.kill(self.process.pid, number)
        return self.end()

    def end(self) -> int:
        """The exit status."""
        self.process.join(PATIENCE)
        return self.process.exitcode

    @property
    def error(self) -> str:
        return (self.place / f"error{self.environment.get('RANK', '')}").read_text()


def ids(place: Path, name: str = "predictions") -> list[str]:
    return [json.loads(line)["id"] for line in (place / "out" / f"{name}.jsonl").read_text().splitlines()]


def finish(place: Path, *more: str) -> tuple[list[str], dict, list[str]]:
    """The same command again, here: the ids in its folder, its summary, and what it asked."""
    asked = []

    class Asks(FakeEngine):
        def before(self, prompt):
            asked.append(prompt)

    assert main(script_parser(("gsm8k",), ""), flags(place, COUNT, *more), engine=Asks) == 0
    assert not list((place / "out").glob("*.rank*")) and not list((place / "out").glob("*.new"))
    return ids(place), json.loads((place / "out" / "summary.json").read_text()), asked


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No launcher."""
    for name in LAUNCHER:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> tuple[list[str], dict]:
    """The ids and the summary of a run that nothing happened to."""
    return finish(tmp_path_factory.mktemp("clean"))[:2]


def test_kill_9_loses_no_line(tmp_path, clean):
    assert Process(tmp_path, "--trace").wait_for_question().answer(2).kill() == -signal.SIGKILL
    assert ids(tmp_path) == ["0", "1"]
    *result, asked = finish(tmp_path, "--trace")
    assert (*result,) == clean and len(asked) == COUNT - 2
    assert ids(tmp_path, "trace") == clean[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_says_how_to_continue(tmp_path, clean, number):
    run = Process(tmp_path).wait_for_question().answer()
    assert run.kill(number) == 128 + number
    assert run.error.splitlines()[-1].endswith("run the same command again to continue") and "Trace" not in run.error
    assert ids(tmp_path) == ["0"]
    assert finish(tmp_path)[:2] == clean


def test_a_second_run_in_the_same_folder_is_refused(tmp_path, clean, capsys):
    first = Process(tmp_path).wait_for_question().answer()
    assert main(script_parser(("gsm8k",), ""), flags(tmp_path, COUNT), engine=FakeEngine) == 2
    error = capsys.readouterr().err
    assert "another run is writing there" in error and error.count("\n") == 1
    assert first.let_go().end() == 0
    assert finish(tmp_path) == (*clean, [])


def test_a_full_disk_ends_the_run_in_one_line(tmp_path, clean):
    """The system takes the beginning of a line and refuses the rest."""
    run = Process(tmp_path, bytes_a_file=2500).wait_for_question().let_go()
    assert run.end() == 2
    assert "File too large; make room there" in run.error and "Traceback" not in run.error
    assert 0 < len(ids(tmp_path)) < COUNT
    assert finish(tmp_path)[:2] == clean


# Several processes


def launch(place: Path, world: int) -> list[Process]:
    """The processes of one launch, as a launcher starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        shared = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    ranks = [shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world)]
    return [Process(place, "--trace", environment=environment) for environment in ranks]


@pytest.mark.parametrize("dies", [0, 1])
def test_kill_9_of_one_process_of_two(tmp_path, clean, dies):
    """The other one notices, and a launch of another size goes on."""
    pair = launch(tmp_path, 2)
    for process in pair:
        process.wait_for_question().answer()
    assert pair[dies].kill() == -signal.SIGKILL
    assert pair[1 - dies].let_go().end() == 2
    assert "Traceback" not in pair[1 - dies].error
    assert ("another process of this launch has ended" in pair[0].error) == (dies == 1)  # one a machine speaks
    trio = [process.let_go() for process in launch(tmp_path, 3)]
    assert [process.end() for process in trio] == [0, 0, 0], trio[0].error
    assert finish(tmp_path, "--trace") == (*clean, [])
    assert ids(tmp_path, "trace") == clean[0]


def test_kill_9_while_merging(tmp_path, clean):
    """The main process is killed when the merged file is there and the files of the others still are too."""
    for process in (pair := launch(tmp_path, 2)):
        process.wait_for_question().answer(2)
    assert [process.kill() for process in pair] == [-signal.SIGKILL] * 2
    merging = (
        "import os, signal, sys; from pathlib import Path; from eval.records import OutputFolder\n"
        "Path.unlink = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        "OutputFolder.claim(sys.argv[1]).merge()\n"
    )
    assert subprocess.run([sys.executable, "-c", merging, tmp_path / "out"]).returncode == -signal.SIGKILL
    assert len(list((tmp_path / "out").glob("*.rank*"))) == 4 and len(ids(tmp_path)) == 4
    *result, asked = finish(tmp_path, "--trace")
    assert (*result,) == clean and len(asked) == 2


def test_processes_without_a_question_end_too(tmp_path, clean):
    """More processes than questions left."""
    with_one_left = Process(tmp_path, "--trace").wait_for_question().answer(COUNT - 1)
    with_one_left.kill()
    pair = [process.let_go() for process in launch(tmp_path, 2)]
    assert [process.end() for process in pair] == [0, 0], pair[0].error
    assert finish(tmp_path, "--trace") == (*clean, [])


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 3])
def test_accelerate_launch(tmp_path, clean, world):
    """As in README: the launcher starts the processes, on CPUs too."""
    given = ["--multi_gpu", "--num_processes", str(world), "--main_process_port", "0", "--module", "tests.fake_engine"]
    done = subprocess.run(
        [Path(sys.executable).with_name("accelerate"), "launch", *given, tmp_path, str(COUNT)],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("tokens per second") == 1
    assert finish(tmp_path) == (*clean, [])


def test_a_launcher_that_starts_one_process_is_pointed_out(tmp_path, monkeypatch, capsys):
    """What accelerate does on a machine without several GPUs unless it is told otherwise."""
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    finish(tmp_path)
    assert "--multi_gpu" in capsys.readouterr().out


def test_a_rank_that_is_left_behind_writes_to_its_own_file(tmp_path):
    """A process that outlives its launcher cannot touch what a new launch merges."""
    left = OutputFolder(tmp_path, rank=1, world=2)
    left.append({"id": "1"})
    folder = OutputFolder.claim(tmp_path)
    folder.merge()
    left.append({"id": "3"})
    folder.append({"id": "3"})
    folder.merge()
    assert [line["id"] for line in folder.lines()] == ["1", "3"]
    folder.close()
