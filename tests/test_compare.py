"""Tables and paired tests over output folders: known figures, and refusals that say which questions differ."""

import csv
import io
import json

import pytest
from scipy.stats import binom

from eval import compare as cli
from eval.comparison import compare
from eval.paired import holm, mcnemar, paired
from eval.records import OutputError
from eval.runs import read_run
from eval.tables import FORMATS
from tests.fake_runs import write_run

A, B = "hub/a", "hub/b"
HALF = [True, False] * 20
MOST = [True, True, True, False] * 10


@pytest.fixture
def folders(tmp_path):
    """A alone, B alone (better), and their ensemble (better still)."""
    return [
        write_run(tmp_path / "a", [False, True] * 20, models=(A,)),
        write_run(tmp_path / "b", [True, False, True, True, False] * 8, models=(B,)),
        write_run(tmp_path / "both", MOST, models=(A, B)),
    ]


@pytest.mark.parametrize(
    "correct, n, low, high",  # from the closed formula
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_interval_of_a_run(tmp_path, correct, n, low, high):
    run = read_run(write_run(tmp_path, [number < correct for number in range(n)], tokens=1))
    assert run.interval == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("only_a, only_b", [(0, 0), (0, 1), (1, 9), (9, 1), (5, 5), (0, 12), (3, 17)])
def test_mcnemar_is_twice_the_smaller_tail(only_a, only_b):
    n = only_a + only_b
    assert mcnemar(only_a, only_b) == pytest.approx(min(1.0, 2 * binom.cdf(min(only_a, only_b), n, 0.5)))


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_paired_counts_and_interval():
    result = paired(HALF, MOST)
    assert (result.n, result.only_a, result.only_b, result.difference) == (40, 0, 10, 0.25)
    assert result.interval[0] < 0.25 < result.interval[1]
    # a share of 0.25 in 40 questions: half the 95% interval is about two standard errors
    assert result.interval[1] - result.interval[0] == pytest.approx(2 * 1.96 * (0.25 * 0.75 / 40) ** 0.5, abs=0.03)
    assert paired(HALF, MOST) == result, "the same seed every time"


def test_swapping_the_runs_turns_the_sign():
    there, back = paired(HALF, MOST), paired(MOST, HALF)
    assert (there.difference, there.p) == (-back.difference, back.p)


@pytest.mark.parametrize("marks", [[True], [False] * 3])
def test_paired_with_nothing_to_tell_apart(marks):
    result = paired(marks, marks)
    assert (result.p, result.interval) == (1.0, None)


def test_gap_is_to_the_best_single_of_the_pair(folders):
    (test,) = compare(folders).tests
    assert test.against.run.models == (B,) and test.is_best_single
    assert test.result.difference == pytest.approx(0.75 - 0.6)


def test_a_better_single_of_no_part_in_the_pair_is_left_out(folders, tmp_path):
    other = write_run(tmp_path / "c", [True] * 40, models=("hub/c",))
    (test,) = compare([*folders, other]).tests
    assert test.against.run.models == (B,)


def test_holm_counts_all_tests_shown(folders, tmp_path):
    unite = write_run(tmp_path / "every", HALF, models=(A, B), schedule="every")
    comparison = compare(folders, [unite])
    assert len(comparison.tests) == 5  # two against the best single, three against the baseline
    assert [test.p_holm for test in comparison.tests] == holm([test.result.p for test in comparison.tests])


def test_missing_single_is_noted(folders):
    comparison = compare(folders[1:])
    assert comparison.notes == ("a + b: UniTE+SAFE on gsm8k: no run of a alone was given",)


def test_other_limits_are_noted(folders, tmp_path):
    devices = {"device": ["cpu", "cpu"]}  # one for each model: no difference to a single one's
    short = write_run(tmp_path / "short", MOST, models=(A, B), schedule="every", max_new_tokens=96, **devices)
    (note,) = compare([*folders, short]).notes
    assert note.endswith("also differ in max_new_tokens (96 and 2048)")


@pytest.mark.parametrize(
    "change, said",
    [
        ({"prompt_sha256": "0" * 64}, "their prompts differ in 1 question(s): 3"),
        ({"gold": "13"}, "their golds differ in 1 question(s): 3"),
        ({"id": "77"}, "a lacks 1 question(s): 77;"),
    ],
)
def test_runs_that_were_not_asked_the_same_are_refused(folders, tmp_path, change, said):
    write_run(tmp_path / "both", MOST, models=(A, B), lines={3: change})
    with pytest.raises(OutputError) as refused:
        compare(folders)
    assert said in str(refused.value)


def test_incomplete_runs_pair_their_shared_questions_only_when_asked(folders, tmp_path):
    write_run(tmp_path / "both", MOST[:30], models=(A, B))
    with pytest.raises(OutputError, match=r"lacks 10 question\(s\): 30, 31, 32, 33, 34, \.\.\..*--shared"):
        compare(folders)
    assert compare(folders, shared=True).tests[0].result.n == 30


def test_nothing_shared_is_refused(tmp_path):
    one = write_run(tmp_path / "a", [True], models=(A,))
    both = write_run(tmp_path / "both", [True], models=(A, B), lines={0: {"id": "x"}})
    with pytest.raises(OutputError, match="share no question"):
        compare([one, both], shared=True)


def test_two_runs_of_the_same_settings_are_refused(folders, tmp_path):
    again = write_run(tmp_path / "again", MOST, models=(A, B))
    with pytest.raises(OutputError, match="two runs of the same settings on gsm8k"):
        compare([*folders, again])


def test_rows_are_told_apart_by_what_differs(tmp_path):
    folders = [write_run(tmp_path / str(gamma), HALF, models=(A, B), gamma=gamma) for gamma in (1, "auto")]
    assert [row[1] for row in compare(folders).rows] == ["UniTE+SAFE, gamma 1", "UniTE+SAFE, gamma auto"]


def test_a_half_written_last_line_and_repaired_golds_are_left_out(folders):
    path = folders[0] / "predictions.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    repaired = json.dumps(json.loads(lines[0]) | {"id": "r", "repaired": True}) + "\n"
    path.write_text("".join(lines) + repaired + lines[1][:50])
    assert list(read_run(folders[0]).predictions) == [str(number) for number in range(40)]


def test_a_run_without_a_headline_is_refused(tmp_path):
    folder = write_run(tmp_path, [True], lines={0: {"repaired": True}})
    with pytest.raises(OutputError, match="only questions with repaired golds"):
        compare([folder])


@pytest.mark.parametrize("broken", [None, "config.json", "predictions.jsonl"])
def test_what_is_no_output_folder_is_refused_in_one_line(folders, tmp_path, capsys, broken):
    folder = folders[0] if broken else tmp_path / "none"
    if broken:
        (folder / broken).write_text("")
    assert cli.main([str(folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_markdown(folders, capsys):
    assert cli.main([str(folder) for folder in folders]) == 0
    text = capsys.readouterr().out
    assert "| models | method | gsm8k (n = 40) |" in text
    assert "| a + b | UniTE+SAFE | 75.0 [59.8, 85.8] (+15.0) |" in text
    assert "Holm's correction for 1 test(s)" in text


def test_mean_over_datasets_only_where_a_row_has_all(folders, tmp_path):
    arc = write_run(tmp_path / "arc", HALF, models=(A, B), data_name="arc")
    text = FORMATS["markdown"](compare([*folders, arc]))
    assert "| a + b | UniTE+SAFE | 75.0 [59.8, 85.8] (+15.0) | 50.0 [35.2, 64.8] | 62.5 |" in text
    assert "| a | single | 50.0 [35.2, 64.8] | – | – |" in text


def test_csv_has_a_line_a_run_and_all_figures(folders):
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](compare(folders, [folders[0]])))))
    assert [row["models"] for row in rows] == ["a", "b", "a + b"]
    assert float(rows[2]["best_single_difference"]) == pytest.approx(0.15) and rows[2]["baseline"] == "a"
    assert rows[0]["ensemble_rate"] == "" and 0 < float(rows[2]["ensemble_rate"]) < 0.2


def test_latex_escapes_names(tmp_path):
    run = write_run(tmp_path / "x", HALF, models=("hub/a_1&b",))
    text = FORMATS["latex"](compare([run]))
    assert r"a\_1\&b & single & 50.0 [35.2, 64.8] \\" in text and "Accuracy in \\%" in text
