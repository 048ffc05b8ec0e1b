"""Asking, scoring, writing down and summing up, without a model."""

import json
from contextlib import contextmanager

import pytest

from data.example import Example
from eval import rescore as command
from eval.records import OutputFolder
from eval.report import VERDICTS, Tally, accuracy_interval, summarize
from eval.rescore import rescore
from eval.run import evaluate, prediction, prompt_hash
from tests.fake_engine import FakeAnswer, fake_answer

KEYS = [
    "id", "subject", "response", "token_ids", "prediction", "gold", "correct", "finish_reason", "tokens", "verdicts",
    "seconds", "seconds_by_part", "forward_passes", "drafted", "peak_memory_bytes", "prompt_sha256",
]  # fmt: skip
SUMMARY = {
    "questions", "accuracy", "accuracy_interval", "unanswered", "cut_off", "tokens", "ensembled", "ensemble_rate",
    "verdicts", "forward_passes", "drafted", "tokens_per_second", "seconds", "peak_memory_bytes",
}  # fmt: skip


def questions(count: int) -> list[tuple[Example, str]]:
    return [(Example(str(n), f"twice {n}", str(2 * n)), f"twice {n}?") for n in range(count)]


def answers(prompts):
    """In another order than they were asked."""
    for index in reversed(range(len(prompts))):
        yield index, fake_answer(prompts[index], trace=True)


def run(folder: OutputFolder, asked, answers=answers, **more) -> Tally:
    tally = Tally()
    evaluate("gsm8k", asked, answers, folder, tally, peak_memory=lambda: 5, **more)
    return tally


def test_every_answer_is_a_line_as_soon_as_it_is_there(tmp_path):
    folder, seen = OutputFolder(tmp_path), []

    def watched(prompts):
        for index, answer in answers(prompts):
            seen.append(len(folder.lines()))
            yield index, answer

    tally = run(folder, questions(3), watched)
    assert seen == [0, 1, 2]
    lines = folder.lines()
    assert [list(line) for line in lines] == [KEYS] * 3
    assert [(line["id"], line["gold"], line["correct"]) for line in lines] == [
        ("2", "4", False), ("1", "2", True), ("0", "0", True)
    ]  # fmt: skip
    assert lines[0]["prompt_sha256"] == prompt_hash("twice 2?") and lines[0]["prediction"] == "5"
    assert lines[0]["seconds"] == 0.8 and sum(lines[0]["seconds_by_part"].values()) == pytest.approx(0.7)
    assert (tally.questions, tally.correct) == (3, 2)
    folder.merge("012")
    assert [line["id"] for line in folder.lines()] == ["0", "1", "2"]
    traces = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert [trace["id"] for trace in traces] == ["0", "1", "2"] and len(traces[0]["tokens"]) == 8


def test_an_answer_is_written_under_the_shield(tmp_path):
    folder, events = OutputFolder(tmp_path), []

    @contextmanager
    def shield():
        before = len(folder.lines())
        yield
        events.append(len(folder.lines()) - before)

    run(folder, questions(2), shield=shield, log=lambda tally: events.append(f"logged {tally.questions}"))
    assert events == [1, "logged 1", 1, "logged 2"]


def test_choices_and_repairs_are_in_the_line_where_there_are_any():
    example = Example("law/3", "Which?", "B", choices=("x", "y"), subject="law", repaired=True)
    line = prediction("mmlu-redux", example, "Which?", FakeAnswer("The answer is (B)"), 5)
    assert (line["choices"], line["repaired"], line["subject"]) == (["x", "y"], True, "law")


@pytest.mark.parametrize("reason", ["length", "context"])
def test_what_did_not_end_is_counted(reason):
    answer = FakeAnswer("", finish_reason=reason, token_ids=() if reason == "context" else (1, 2))
    line = prediction("gsm8k", questions(1)[0][0], "?", answer, 5)
    summary = summarize([line])
    assert summary["unanswered"] == 1 and not line["correct"]
    assert (summary["cut_off"], summary["beyond_context"]) == ((1, 0) if reason == "length" else (0, 1))


def lines_of(marks: str, subject: str | None = None, **more) -> list[dict]:
    """A line a mark: + right, - wrong, ? no answer found."""
    answer = FakeAnswer("")
    made = [prediction("gsm8k", Example(f"{subject}/{n}", "?", "1", (), subject), "?", answer, n) for n in range(9)]
    return [
        line | {"correct": mark == "+", "prediction": None if mark == "?" else "1"} | more
        for line, mark in zip(made, marks, strict=False)
    ]


def test_a_summary_counts_all_lines():
    lines = lines_of("++-?")
    summary = summarize(lines)
    assert summary.keys() >= SUMMARY and "subjects" not in summary
    assert (summary["questions"], summary["accuracy"], summary["unanswered"]) == (4, 0.5, 1)
    assert summary["accuracy_interval"] == pytest.approx([0.15004, 0.84996], abs=1e-5)  # Wilson
    assert (summary["tokens"], summary["ensembled"], summary["ensemble_rate"]) == (32, 8, 0.25)
    assert list(summary["verdicts"]) == list(VERDICTS) and summary["verdicts"]["unanimous"] == 12
    assert (summary["forward_passes"], summary["drafted"], summary["peak_memory_bytes"]) == ([36, 8], 40, 3)
    assert summary["seconds"] == pytest.approx(
        {"draft": 1.2, "verify": 0.8, "tokenize": 0.4, "ensemble": 0.4, "total": 3.2}
    )
    assert summary["tokens_per_second"] == pytest.approx(10)


def test_subjects_have_both_means():
    summary = summarize([*lines_of("+", "law"), *lines_of("+---", "art")])
    assert list(summary["subjects"]) == ["art", "law"]
    assert all(part.keys() >= SUMMARY for part in summary["subjects"].values())
    assert summary["accuracy_mean_over_subjects"] == pytest.approx(0.625)
    assert summary["accuracy_mean_over_questions"] == summary["accuracy"] == 0.4


def test_mended_golds_are_a_figure_of_their_own():
    summary = summarize([*lines_of("+-", "law"), *lines_of("++", "art", repaired=True)])
    assert (summary["questions"], summary["accuracy"], summary["questions_repaired"]) == (2, 0.5, 2)
    assert summary["accuracy_repaired"] == 0.75
    assert summary["accuracy_repaired_interval"] == accuracy_interval(3, 4)
    assert summary["tokens"] == 32, "the run spent them"
    assert summary["subjects"]["art"]["accuracy"] is None and summary["accuracy_mean_over_subjects"] == 0.5


def test_nothing_is_summed_up_too():
    summary = summarize([])
    assert summary.keys() >= SUMMARY
    assert (summary["questions"], summary["accuracy"], summary["accuracy_interval"]) == (0, None, None)
    assert (summary["ensemble_rate"], summary["tokens_per_second"], summary["forward_passes"]) == (0.0, None, [])


def test_rows_that_were_not_asked_are_named():
    skipped = [{"id": "a/1", "reason": "cut"}, {"id": "b/2", "reason": "cut"}, {"id": "c/3", "reason": "odd"}]
    assert summarize([], skipped)["skipped"] == {
        "cut": {"rows": 2, "ids": ["a/1", "b/2"]}, "odd": {"rows": 1, "ids": ["c/3"]}
    }  # fmt: skip


@pytest.fixture
def finished(tmp_path):
    """A run whose lines were scored by another rule: all wrong; the last line is in a rank's file, and torn."""
    folder = OutputFolder(tmp_path / "out")
    folder.path.mkdir()
    folder.prepare({"data_name": "gsm8k", "skipped": [{"id": "9", "reason": "cut"}]})
    run(folder, questions(3))
    folder.replace_lines([line | {"correct": False, "prediction": "?"} for line in folder.lines()])
    run(OutputFolder(folder.path, rank=1, world=2), questions(4)[3:])
    with (folder.path / "predictions.rank1.jsonl").open("a") as file:
        file.write('{"id": "4", "resp')
    return folder


def test_rescoring_needs_no_model(finished):
    result = rescore(finished.path)
    assert (set(result.became_right), result.became_wrong, result.reread) == ({"0", "1"}, (), 3)
    lines = {line["id"]: line for line in finished.lines()}
    assert {id: line["correct"] for id, line in lines.items()} == {"0": True, "1": True, "2": False, "3": True}
    assert list(lines["2"]) == KEYS and lines["2"]["prediction"] == "5"
    summary = json.loads((finished.path / "summary.json").read_text())
    assert summary["accuracy"] == 0.75 and summary["skipped"]["cut"]["rows"] == 1
    assert rescore(finished.path).reread == 0


def test_rescoring_says_what_changed(finished, tmp_path, capsys):
    assert command.main([str(finished.path), str(tmp_path / "no run")]) == 2
    told = capsys.readouterr()
    assert "accuracy 75.0% of 4 questions, 3 predictions changed" in told.out and "now right:" in told.out
    assert "holds no run" in told.err and told.err.count("\n") == 1
    assert not (tmp_path / "no run").exists()


def test_a_run_that_goes_on_is_not_rescored(finished):
    holder = OutputFolder.claim(finished.path)
    with pytest.raises(ValueError, match="another run is writing there"):
        rescore(finished.path)
    holder.close()
