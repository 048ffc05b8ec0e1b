"""Both scripts from flags to files; every wrong input gets its one line and status 2."""

import json
import os
import signal
from pathlib import Path

import pytest

from cli.flags import add_subject_flags, script_parser
from cli.main import main
from cli.settings import differences, other_versions, revisions
from cli.table import closing_table
from eval.records import OutputFolder
from eval.report import summarize
from tests.fake_engine import FakeEngine, flags
from tests.toys import save_toy

RUN_SAFE = ("gsm8k", "math500", "arc", "toy")


class NoEngine(FakeEngine):
    """A run that comes to loading its weights."""

    def load(self) -> None:
        pytest.fail("weights were loaded")


def run(place: Path, *more: str, count: int = 4, engine=FakeEngine, datasets=RUN_SAFE) -> int:
    """The status of a run; later flags win."""
    parser = script_parser(datasets, "test")
    add_subject_flags(parser)
    try:
        return main(parser, flags(place, count, *more), engine=engine)
    except SystemExit as ended:  # argparse
        return ended.code


def lines(place: Path, name: str = "predictions") -> list[dict]:
    return [json.loads(line) for line in (place / "out" / f"{name}.jsonl").read_text().splitlines()]


def config(place: Path) -> dict:
    return json.loads((place / "out" / "config.json").read_text())


def one_line(capsys) -> str:
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1, error
    return error


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No launcher."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)


# A run and what continues it


def test_a_run_writes_its_files_and_a_second_asks_nothing(tmp_path, capsys):
    assert run(tmp_path, "--trace") == 0
    assert [line["id"] for line in lines(tmp_path)] == [line["id"] for line in lines(tmp_path, "trace")] == list("0123")
    assert [line["correct"] for line in lines(tmp_path)] == [True, True, False, True]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["accuracy"] == 0.75 and (tmp_path / "out" / "report.html").exists()
    said = capsys.readouterr()
    assert "75.0%" in said.out and "drafter + verifier on gsm8k, UniTE+SAFE" in said.out
    before = (tmp_path / "out" / "predictions.jsonl").read_bytes()
    assert run(tmp_path, "--trace", engine=NoEngine) == 0
    assert (tmp_path / "out" / "predictions.jsonl").read_bytes() == before
    assert capsys.readouterr().out == said.out


def test_config_has_every_setting_as_resolved(tmp_path):
    assert run(tmp_path, "--gamma", "auto", "--weights", "1,2", "--limit", "3", "--batch_size", "auto") == 0
    found = config(tmp_path)
    assert found["models"] == ["fake/drafter", "fake/verifier"] and found["revisions"] == [None, None]
    expected = {
        "data_name": "gsm8k", "limit": 3, "gamma": "auto", "weights": [1.0, 2.0], "dtype": "float32", "device": "cpu",
        "attn_implementation": "sdpa", "ensemble": True, "top_k": 10, "max_new_tokens": 2048, "batch_size": 32,
        "trace": False, "quantization": None, "processes": 1, "skipped": [],
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    assert len(found["data_hashes"]) == 1 and found["versions"]["torch"]


def test_a_larger_limit_continues_and_a_smaller_does_not(tmp_path, capsys):
    assert run(tmp_path, "--limit", "2") == 0
    first = lines(tmp_path)
    assert run(tmp_path, "--limit", "3", "--batch_size", "2") == 0
    assert lines(tmp_path)[:2] == first and len(lines(tmp_path)) == 3 and config(tmp_path)["limit"] == 3
    capsys.readouterr()
    assert run(tmp_path, "--limit", "2", engine=NoEngine) == 2
    assert "limit 3 (now 2)" in one_line(capsys)


def test_the_same_rows_elsewhere_continue_and_others_do_not(tmp_path, capsys):
    assert run(tmp_path) == 0
    moved = tmp_path / "moved.jsonl"
    rows = (tmp_path / "rows4.jsonl").read_text()
    moved.write_text(rows)
    assert run(tmp_path, "--data_path", str(moved), engine=NoEngine) == 0
    capsys.readouterr()
    moved.write_text(rows.replace("twice 3", "thrice 1"))
    assert run(tmp_path, "--data_path", str(moved), engine=NoEngine) == 2
    assert "data_source" in one_line(capsys)


def test_other_golds_in_the_same_file_are_told(tmp_path, capsys):
    assert run(tmp_path) == 0
    rows = tmp_path / "rows4.jsonl"
    rows.write_text(rows.read_text().replace("#### 6", "#### 7"))
    capsys.readouterr()
    assert run(tmp_path, engine=NoEngine) == 2
    assert "the rows of the data" in one_line(capsys)


@pytest.mark.parametrize(
    "more, told",
    [
        (["--gamma", "2"], "gamma 5 (now 2)"),
        (["--ensemble", "False"], "ensemble True (now False)"),
        (["--schedule", "every", "--sharpen_type", "none"], "sharpen_type heur (now none), schedule safe (now every)"),
        (["--weights", "1,3"], "weights None (now 1.0,3.0)"),
        (["--dtype", "bfloat16"], "dtype float32 (now bfloat16)"),
        (["--trace"], "trace False (now True)"),
        (["--model_path2", "fake/other"], "model_path2 fake/verifier (now fake/other)"),
        (["--model_path3", "fake/third"], "2 models (now 3)"),
        (["--max_new_tokens", "9"], "max_new_tokens 2048 (now 9)"),
    ],
)  # fmt: skip
def test_other_settings_are_refused_by_name_and_lose_nothing(tmp_path, capsys, more, told):
    assert run(tmp_path) == 0
    capsys.readouterr()
    files = {file: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    assert run(tmp_path, *more, engine=NoEngine) == 2
    assert told in one_line(capsys)
    assert {file: file.read_bytes() for file in (tmp_path / "out").iterdir()} == files


def test_overwrite_begins_anew_once_the_models_are_loaded(tmp_path):
    class Broken(FakeEngine):
        def load(self):
            raise KeyboardInterrupt

    assert run(tmp_path, count=4) == 0
    before = lines(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "--gamma", "2", "--overwrite", engine=Broken)
    assert lines(tmp_path) == before and config(tmp_path)["gamma"] == 5
    assert run(tmp_path, "--gamma", "2", "--overwrite", count=2) == 0
    assert len(lines(tmp_path)) == 2 and config(tmp_path)["gamma"] == 2


def test_a_folder_with_answers_of_unknown_settings_is_refused(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "predictions.jsonl").write_text('{"id": "0"}\n')
    assert run(tmp_path, engine=NoEngine) == 2
    assert "without a config.json" in one_line(capsys)
    assert run(tmp_path, "--overwrite") == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("writing", [True, False])
def test_a_signal_ends_the_run_with_whole_lines(tmp_path, capsys, monkeypatch, number, writing):
    """It comes while the second answer is written, or while it is being found."""

    class Signalled(FakeEngine):
        def before(self, prompt):
            if "twice 1" in prompt and not writing:
                signal.raise_signal(number)

    def append(folder, prediction, trace=None):
        if prediction["id"] == "1" and writing:
            signal.raise_signal(number)
        original(folder, prediction, trace)

    original = OutputFolder.append
    monkeypatch.setattr(OutputFolder, "append", append)
    before = signal.getsignal(number)
    assert run(tmp_path, engine=Signalled) == 128 + number
    assert signal.getsignal(number) == before
    assert [line["id"] for line in lines(tmp_path)] == (["0", "1"] if writing else ["0"])
    error = capsys.readouterr().err
    assert f"stopped by {signal.Signals(number).name}" in error and "run the same command again to continue" in error
    monkeypatch.undo()
    assert run(tmp_path) == 0
    assert [line["id"] for line in lines(tmp_path)] == list("0123")


def test_an_error_in_the_middle_keeps_the_lines_before(tmp_path, capsys):
    from safe.lm import ModelError

    class Overflows(FakeEngine):
        def before(self, prompt):
            if "twice 2" in prompt:
                raise ModelError("fake/drafter: logits are not finite")

    assert run(tmp_path, engine=Overflows) == 2
    assert "not finite" in capsys.readouterr().err
    assert [line["id"] for line in lines(tmp_path)] == ["0", "1"]


# What both scripts do with real models


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> Path:
    """A folder with two toy models, and one of a benchmark's subjects."""
    place = tmp_path_factory.mktemp("toys")
    save_toy(place / "a", "qwen", 1)
    save_toy(place / "b", "gemma", 2)
    (place / "bbh").mkdir()
    (place / "bbh" / "navigate.jsonl").write_text(json.dumps({"input": "Turn. Back?", "target": "No"}) + "\n")
    return place


def with_toys(toys: Path, place: Path, *more: str, **options) -> int:
    models = ("--model_path1", f"{toys}/a", "--model_path2", f"{toys}/b/", "--max_new_tokens", "6")
    return run(place, *models, *more, engine=None, count=3, **options)


def test_toys_answer(toys, tmp_path):
    assert with_toys(toys, tmp_path, "--trace") == 0
    assert config(tmp_path)["models"] == [f"{toys}/a", f"{toys}/b"]
    for line, trace in zip(lines(tmp_path), lines(tmp_path, "trace"), strict=True):
        assert line["token_ids"] == [token["id"] for token in trace["tokens"]]
        assert line["tokens"] == len(line["token_ids"]) == sum(line["verdicts"].values()) - line["verdicts"]["changed"]
        assert len(line["forward_passes"]) == 2 and line["peak_memory_bytes"] > 0


def test_a_batch_and_a_restart_change_no_line(toys, tmp_path):
    assert with_toys(toys, tmp_path / "one") == 0
    assert with_toys(toys, tmp_path / "two", "--limit", "1", "--batch_size", "3") == 0
    assert with_toys(toys, tmp_path / "two", "--batch_size", "auto") == 0
    ids = [[(line["id"], line["token_ids"], line["verdicts"]) for line in lines(tmp_path / k)] for k in ("one", "two")]
    assert ids[0] == ids[1]


def test_ensemble_false_is_the_drafter_alone(toys, tmp_path, capsys):
    assert with_toys(toys, tmp_path, "--ensemble", "False") == 0
    assert all(not any(line["verdicts"].values()) and len(line["forward_passes"]) == 1 for line in lines(tmp_path))
    said = capsys.readouterr().out
    assert "a on gsm8k\n" in said and "E/T" not in said


def test_subjects_are_reported_each(toys, tmp_path, capsys):
    more = ("--data_name", "bbh", "--data_path", f"{toys}/bbh", "--subjects", "navigate")
    assert with_toys(toys, tmp_path, *more, datasets=("gsm8k", "bbh")) == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert list(summary["subjects"]) == ["navigate"]
    said = capsys.readouterr().out
    assert "mean over subjects" in said and "mean over questions" in said and "\nnavigate" in said


# Wrong input

WRONG = [
    (["--data_name", "gsm9k"], "gsm9k"),
    (["--data_path", "missing.jsonl"], "missing.jsonl"),
    (["--subjects", "law"], "has no subjects"),
    (["--cot_prompts", "here"], "cot_prompts"),
    (["--model_path2", "./nowhere"], "nowhere"),
    (["--model_path1", "{toys}/bbh/navigate.jsonl"], "navigate.jsonl"),
    (["--model_path1", "{toys}/bbh"], "config.json"),
    (["--model_path1", "{toys}/x.gguf"], "x.gguf"),
    (["--gamma", "0"], "gamma"),
    (["--gamma", "x"], "gamma: must be a whole number or auto"),
    (["--gamma", "5.0"], "gamma"),
    (["--weights", "1,1,1"], "3 given for 2 models"),
    (["--weights", "1,x"], "weights: must be numbers"),
    (["--weights", "1,-1"], "weights must be positive"),
    (["--ensemble", "yes"], "True or False"),
    (["--ensemble", "0"], "True or False"),
    (["--trace", "maybe"], "True or False"),
    (["--ensemble_type", "mean"], "ensemble_type"),
    (["--dtype", "int4"], "dtype"),
    (["--device", "tpu"], "tpu"),
    (["--device", "cuda:99"], "cuda:99"),
    (["--device", "cpu,cpu,cpu"], "3 devices for 2 models"),
    (["--attn_implementation", "flash_attention_2", "--batch_size", "2"], "batch_size"),
    (["--limit", "0"], "limit"),
    (["--limit", "many"], "limit"),
    (["--batch_size", "0"], "batch_size"),
    (["--max_new_tokens", "0"], "max_new_tokens"),
    (["--top_k", "0"], "top_k"),
    (["--sharpen_lambda", "3"], "sharpen_lambda"),
    (["--gac_gate", "nan"], "gac_gate"),
    (["--output_path", "{place}/rows3.jsonl"], "a file, not a folder"),
    (["--output_path", "{place}/rows3.jsonl/out"], "a file, not a folder"),
    (["--no_such_flag", "1"], "no_such_flag"),
    (["--model_path"], "--model_path"),
]


@pytest.mark.parametrize("more, told", WRONG, ids=[" ".join(more) for more, _ in WRONG])
def test_wrong_input_is_one_line_and_status_2_before_weights(toys, tmp_path, capsys, monkeypatch, more, told):
    monkeypatch.setattr("transformers.AutoModelForCausalLM.from_pretrained", lambda *_, **__: pytest.fail("loaded"))
    more = [flag.format(toys=toys, place=tmp_path) for flag in more]
    assert with_toys(toys, tmp_path, *more) == 2
    assert told in one_line(capsys)


@pytest.mark.parametrize("kind, package", [("tensorboard", "tensorboard"), ("wandb", "wandb")])
def test_a_tracker_that_is_not_installed_is_told(tmp_path, capsys, monkeypatch, kind, package):
    monkeypatch.setattr("cli.tracker.AVAILABLE", {kind: lambda: False})
    assert run(tmp_path, "--report_to", kind, engine=NoEngine) == 2
    assert f"pip install {package}" in one_line(capsys)


@pytest.mark.parametrize(
    "row", ['{"question": "x"}', '{"question": 3, "answer": "#### 1"}', "{", '{"question": "x", "answer": "1"}']
)
def test_a_broken_row_is_named(tmp_path, capsys, row):
    broken = tmp_path / "broken.jsonl"
    flags(tmp_path, 4)
    broken.write_text((tmp_path / "rows4.jsonl").read_text() + row + "\n")
    assert run(tmp_path, "--data_path", str(broken), engine=NoEngine) == 2
    assert "broken.jsonl, line 5" in one_line(capsys)
    assert not (tmp_path / "out").exists()


def test_models_are_given_in_order(tmp_path, capsys):
    parser = script_parser(RUN_SAFE, "")
    for given, told in (
        (["--model_path2", "b", "--data_name", "gsm8k"], "--model_path1"),
        (["--data_name", "gsm8k"], "--model_path1"),
        (["--model_path1", "a"], "--data_name"),
        (["--model_path1", "a", "--data_name", "gsm8k"], "--output_path"),
        (["--model_path1", "a", "--model_path3", "b", "--data_name", "gsm8k"], "--model_path2"),
    ):
        assert main(parser, [*given, "--output_path", str(tmp_path)] if told != "--output_path" else given) == 2
        assert told in one_line(capsys)


# Settings that differ, the closing table


def settings(**more) -> dict:
    return {"gamma": 5, "models": ["a", "b"], "revisions": ["1", "2"], "versions": {"torch": "2"}} | more


@pytest.mark.parametrize(
    "change, told",
    [
        ({}, []),
        ({"gamma": 3}, ["gamma 5 (now 3)"]),
        ({"models": ["x/a", "b"]}, []),
        ({"models": ["x", "b"], "revisions": ["9", "2"]}, ["model_path1 a (now x)"]),
        ({"revisions": ["1", "9"]}, ["the files of model_path2, b"]),
        ({"revisions": ["1", None]}, []),
        ({"models": ["a", "x"], "revisions": ["1", None]}, ["model_path2 b (now x)"]),
        ({"models": ["a"], "revisions": ["1"]}, ["2 models (now 1)"]),
        ({"batch_size": 8, "processes": 4, "limit": 5, "versions": {"torch": "3"}}, []),
    ],
)
def test_differences(change, told):
    assert differences(settings(), settings(**change)) == told


def test_other_versions():
    assert other_versions(settings(), settings(versions={"torch": "3", "new": "1"})) == ["torch 2 (now 3)"]


def test_a_revision_is_what_the_files_hold(tmp_path):
    (tmp_path / "model").mkdir()
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(b"1" * 100)
    first = revisions([str(tmp_path / "model"), "no/model"])
    assert first == revisions([f"{tmp_path}/model/", "no/model"]) and first[1] is None
    (tmp_path / "model" / "README.md").write_text("about it")
    assert revisions([str(tmp_path / "model")]) == first[:1]
    weights.write_bytes(b"2" * 100)
    assert revisions([str(tmp_path / "model")]) != first[:1]
    os.rename(tmp_path / "model", tmp_path / "moved")
    weights = tmp_path / "moved" / "model.safetensors"
    weights.write_bytes(b"1" * 100)
    assert revisions([str(tmp_path / "moved")]) == first[:1]


def test_the_table_of_no_question(tmp_path):
    chosen = {"models": ["a", "b"], "data_name": "toy", "ensemble": True, "ensemble_type": "gac", "schedule": "every"}
    table = closing_table(summarize([]), chosen, tmp_path)
    assert "a + b on toy, GaC\n" in table and "no question" in table
