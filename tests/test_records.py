"""The files of an output folder: nothing half, nothing twice, nothing lost."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eval import records
from eval.records import OutputError, OutputFolder, append_line, read_lines


def line(name: str, **more) -> dict:
    return {"id": name, "response": "漢 \u2028 \ud800", **more}


def ids(folder: OutputFolder, name: str = "predictions") -> list[str]:
    return [found["id"] for found in read_lines(folder.path / f"{name}.jsonl")]


@pytest.fixture
def folder(tmp_path):
    folder = OutputFolder.claim(tmp_path / "deep" / "out")
    yield folder
    folder.close()


def test_a_line_is_there_as_it_was_written(folder):
    folder.append(line("1"), {"id": "1", "tokens": []})
    folder.prepare({"gamma": 5})
    assert folder.lines() == [line("1")]
    assert ids(folder, "trace") == ["1"]
    assert folder.config() == {"gamma": 5}


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_torn_last_line_is_dropped_and_asked_again(folder, cut):
    for name in "12":
        folder.append(line(name), {"id": name})
    for file in folder.path.glob("*.jsonl"):
        os.truncate(file, file.stat().st_size - min(cut, 10))
    assert [found["id"] for found in folder.lines()] == ["1"]
    folder.merge()
    folder.append(line("2"), {"id": "2"})
    assert ids(folder) == ids(folder, "trace") == ["1", "2"]


def test_a_trace_without_its_prediction_is_dropped(folder):
    folder.append(line("1"), {"id": "1"})
    append_line(folder.path / "trace.jsonl", {"id": "2", "stale": True})
    folder.merge()
    folder.append(line("2"), {"id": "2"})
    assert list(read_lines(folder.path / "trace.jsonl")) == [{"id": "1"}, {"id": "2"}]


@pytest.mark.parametrize("broken", ["nonsense", "[1]", '{"no": "id"}', "\0\0\0"])
def test_a_broken_line_in_the_middle_is_an_error_with_its_number(folder, broken):
    (folder.path / "predictions.jsonl").write_text(f'{{"id": "1"}}\n{broken}\n{{"id": "2"}}\n')
    with pytest.raises(OutputError, match="line 2"):
        folder.lines()


def test_overwrite_removes_what_a_run_writes_and_nothing_else(folder):
    folder.append(line("1"), {"id": "1"})
    OutputFolder(folder.path, rank=1, world=2).append(line("2"))
    folder.prepare({"gamma": 5})
    folder.write_summary({})
    (folder.path / "notes.txt").write_text("mine")
    folder.prepare({"gamma": 3}, overwrite=True)
    assert {file.name for file in folder.path.iterdir()} == {"config.json", "notes.txt", ".lock"}
    assert folder.config() == {"gamma": 3}


def test_answers_without_a_config_are_nobodys(folder):
    folder.append(line("1"))
    with pytest.raises(OutputError, match="without a config.json"):
        folder.config()


def test_a_folder_is_one_runs(folder):
    with pytest.raises(OutputError, match="another run"):
        OutputFolder.claim(folder.path)
    folder.close()
    OutputFolder.claim(folder.path).close()


def test_a_child_does_not_keep_the_folder(tmp_path):
    """A process that is killed may leave children behind, say, one that grades."""
    script = (
        "import os, signal, sys; from eval.records import *\n"
        "folder = OutputFolder.claim(sys.argv[1])\n"
        "born, birth = os.pipe()\n"
        "if not os.fork(): os.write(birth, b'.'); sys.stdin.read(); os._exit(0)\n"
        "os.read(born, 1)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE) as process:
        assert process.wait() == -signal.SIGKILL
        OutputFolder.claim(tmp_path).close()  # the child is still there: it waits for this end of the pipe


def ranks(folder: OutputFolder, world: int = 3, each: int = 2) -> None:
    """The files that as many processes leave; the second line of the first stands in the merged file too."""
    for rank in range(world):
        process = OutputFolder(folder.path, rank, world)
        for name in range(rank, world * each, world):
            process.append(line(f"{name}"), {"id": f"{name}"})
    folder.append(line("3"), {"id": "3"})


def test_ranks_are_merged_in_the_order_of_the_questions(folder):
    ranks(folder)
    folder.merge(order=[str(i) for i in range(6)])
    assert ids(folder) == ids(folder, "trace") == [str(i) for i in range(6)]
    assert not list(folder.path.glob("*.rank*"))


def test_files_that_are_merged_are_left_alone(folder):
    ranks(folder)
    folder.merge(order=[str(i) for i in range(6)])
    before = {file: file.stat().st_ino for file in folder.path.iterdir()}
    folder.merge(order=[str(i) for i in range(6)])
    assert {file: file.stat().st_ino for file in folder.path.iterdir()} == before


@pytest.mark.parametrize("dies_at", range(1, 11))
def test_dying_while_merging_loses_nothing_and_doubles_nothing(folder, monkeypatch, dies_at):
    """The merge is stopped before each of its ten steps on the disk; the next one finds the rest."""
    left = dies_at

    def counted(step):
        def stops(*args, **kwargs):
            nonlocal left
            left -= 1
            if not left:
                raise KeyboardInterrupt
            return step(*args, **kwargs)

        return stops

    ranks(folder)
    with monkeypatch.context() as patch:
        for module, name in ((records.os, "fsync"), (records.os, "replace"), (type(folder.path), "unlink")):
            patch.setattr(module, name, counted(getattr(module, name)))
        with pytest.raises(KeyboardInterrupt):
            folder.merge()
    folder.merge(order=[str(i) for i in range(6)])
    assert ids(folder) == ids(folder, "trace") == [str(i) for i in range(6)]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_fails_leaves_whole_lines(folder, monkeypatch, code):
    """The device takes the line and then cannot keep it."""
    folder.append(line("1"))
    with monkeypatch.context() as patch:
        patch.setattr(records.os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(code, os.strerror(code))))
        with pytest.raises(OutputError, match=os.strerror(code)):
            folder.append(line("2"))
        with pytest.raises(OutputError, match=os.strerror(code)):
            folder.write_summary({})
    assert ids(folder) == ["1"] and not list(folder.path.glob("*.new"))
    folder.append(line("2"))
    assert ids(folder) == ["1", "2"]


def test_a_full_disk_leaves_whole_lines(folder):
    """A process that may write 1000 bytes a file: the system takes the beginning of a line and refuses the rest."""
    script = (
        "import sys; from pathlib import Path; from eval.records import *\n"
        "folder = OutputFolder(Path(sys.argv[1]))\n"
        "for n in range(10): folder.append({'id': str(n), 'response': 'x' * 200})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder.path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "File too large; make room there" in done.stderr
    assert ids(folder) == ["0", "1", "2", "3"]
    assert (folder.path / "predictions.jsonl").read_bytes().endswith(b"\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_device_that_is_full(tmp_path):
    full = tmp_path / "full.jsonl"
    full.symlink_to("/dev/full")
    with pytest.raises(OutputError, match="No space left on device; make room there"):
        append_line(full, line("1"))


@pytest.mark.parametrize("place, told", [("file/out", "a file, not a folder"), ("file", "a file, not a folder")])
def test_what_is_no_folder_is_told_before_anything_is_made(tmp_path, place, told):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=told):
        OutputFolder(tmp_path / place).check_writable()


def test_a_folder_that_may_not_be_written_to(tmp_path):
    OutputFolder(tmp_path / "new" / "out").check_writable()
    assert not (tmp_path / "new").exists()
    tmp_path.chmod(0o500)
    place = "/sys" if os.geteuid() == 0 else tmp_path  # the superuser may write to any folder but the kernel's
    with pytest.raises(OutputError, match="name another"):
        OutputFolder(Path(place, "out")).check_writable()
        OutputFolder.claim(f"{place}/out")
    tmp_path.chmod(0o700)


def test_json_is_whole_or_not_there(folder):
    folder.prepare({"a": 1})
    with pytest.raises(TypeError):
        folder.prepare({"a": object()})
    assert json.loads((folder.path / "config.json").read_text()) == {"a": 1}
