"""The sweeps: which runs they make, and what becomes of runs that fail or are stopped. The runs themselves are a fake
that notes its command and writes an output folder, so no model is loaded."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.flags import names, script_parser

ROOT = Path(__file__).parent.parent
DATASETS = ("gsm8k", "math500", "arc", "bbh", "mmlu-redux")
FAKE = """
import pathlib, sys
sys.path.insert(0, {root!r})
from tests.fake_runs import write_run
script, *flags = sys.argv[1:]
given = dict(zip(flags[::2], flags[1::2]))
with open({log!r}, "a") as log:
    log.write(" ".join([script, *flags]) + "\\n")
fail = {fail!r}
if fail and fail in given["--output_path"]:
    sys.exit({status})
models = [given[f"--model_path{{i}}"] for i in (1, 2, 3) if f"--model_path{{i}}" in given]
named = ("--ensemble_type", "--schedule", "--sharpen_type", "--sharpen_lambda", "--top_k")
settings = {{key[2:]: given[key] for key in named if key in given}}
gamma = given.get("--gamma", "5")
write_run(pathlib.Path(given["--output_path"]), [True, False] * 4, models=models, data_name=given["--data_name"],
          gamma=gamma if gamma == "auto" else int(gamma), ensemble="--ensemble" not in given, **settings)
"""


class Sweep:
    """A sweep whose runs are fakes. fail: part of an output path whose run ends with `status`."""

    def __init__(self, folder: Path):
        self.folder, self.log = folder, folder / "log"

    def __call__(self, script: str, *, fail=None, status=1, python="true", **variables) -> subprocess.CompletedProcess:
        fake = self.folder / "fake.py"
        fake.write_text(FAKE.format(root=str(ROOT), log=str(self.log), fail=fail, status=status))
        self.log.write_text("")
        launch = shlex.join([sys.executable, str(fake)])
        given = {"OUT": str(self.folder / "out"), "MODELS": "hub/a hub/b", "LAUNCH": launch, "PYTHON": python}
        command = [str(ROOT / "scripts" / f"{script}.sh")]
        return subprocess.run(command, env=os.environ | given | variables, capture_output=True, text=True, check=False)

    @property
    def commands(self) -> list[list[str]]:
        """The commands of the last sweep, in order."""
        return [shlex.split(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def sweep(tmp_path):
    return Sweep(tmp_path)


@pytest.mark.parametrize(
    "script, models, runs",
    [
        ("table2", "hub/a hub/b", 2 + 2 * 2),
        ("table2", "hub/a hub/b hub/c", 3 + 4 * 2 * 2),
        ("sharpening", "hub/a hub/b", 2 + 2 * (5 + 2)),
        ("gamma", "hub/a hub/b", 2 + 7),
        ("top_k", "hub/a hub/b", 2 + 6),
        ("drafter_order", "hub/a hub/b hub/c", 3 + 2 * 3),
    ],
)
def test_every_cell_is_a_run_of_its_own_that_the_scripts_accept(sweep, script, models, runs):
    done = sweep(script, MODELS=models, DATASETS="bbh", DATA_bbh="some/folder")
    assert done.returncode == 0, done.stderr
    assert len(sweep.commands) == runs
    flags = script_parser(DATASETS, "")
    flags.add_argument("--subjects", type=names)
    given = [flags.parse_args(command[1:]) for command in sweep.commands]
    assert len({args.output_path for args in given}) == runs
    assert {command[0] for command in sweep.commands} == {"run_safe_mmlu.py"}
    assert {args.data_path for args in given} == {"some/folder"}


def test_all_datasets_each_with_its_script(sweep):
    assert sweep("top_k", TOP_KS="10").returncode == 0
    scripts = {command[command.index("--data_name") + 1]: command[0] for command in sweep.commands}
    assert scripts == dict.fromkeys(DATASETS[:3], "run_safe.py") | dict.fromkeys(DATASETS[3:], "run_safe_mmlu.py")


def test_a_failed_cell_stops_nothing_is_listed_and_runs_again(sweep):
    done = sweep("gamma", DATASETS="gsm8k", fail="unite-3")
    assert done.returncode == 1 and len(sweep.commands) == 9
    assert done.stderr.count("unite-") == 1 and "gamma/a+b/unite-3 (exit status 1)" in done.stderr
    again = sweep("gamma", DATASETS="gsm8k")
    assert again.returncode == 0 and not again.stderr
    assert [command[-1] for command in sweep.commands] == ["3"]


@pytest.mark.parametrize("status", [130, 143])
def test_a_stopped_sweep_stops_and_goes_on_when_asked_again(sweep, status):
    done = sweep("gamma", DATASETS="gsm8k", fail="unite-3", status=status)
    assert done.returncode == status and "same command again" in done.stderr
    before = len(sweep.commands)
    assert sweep("gamma", DATASETS="gsm8k").returncode == 0
    assert before - 1 + len(sweep.commands) == 9


def test_other_flags_run_finished_cells_again(sweep):
    for flags, runs in (("--limit 4", 9), ("--limit 4", 0), ("--limit 8", 9)):
        assert sweep("gamma", DATASETS="gsm8k", FLAGS=flags).returncode == 0
        assert len(sweep.commands) == runs


@pytest.mark.parametrize("models", ["", "hub/a", "a b c d"])
def test_the_number_of_models_is_checked_first(sweep, models):
    done = sweep("table2", MODELS=models)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not sweep.commands


def test_the_toy_chain_ends_in_table_and_figures(sweep):
    done = sweep("toy_table2", python=sys.executable, GAMMAS="1 5")
    assert done.returncode == 0, done.stderr
    out = sweep.folder / "out"
    assert "| a + b | UniTE+SAFE |" in (out / "table2.md").read_text() and "UniTE+SAFE" in done.stdout
    assert (out / "table2_figures" / "latency.pdf").exists() and (out / "gamma_figures" / "gamma.png").exists()
