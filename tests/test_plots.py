"""Figures: what each shows is what the runs hold, each is written twice, and what has no data is named."""

import pytest

from eval import plots
from eval.runs import read_run
from tests.fake_runs import write_run

PAIR = ("hub/a", "hub/b")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A single model, an every-token run and SAFE at three gammas; one more dataset."""
    root = tmp_path_factory.mktemp("runs")
    marks = [True, True, False] * 10
    folders = [
        write_run(root / "a", marks, models=PAIR[:1]),
        write_run(root / "every", marks, models=PAIR, schedule="every", rate=1.0, trace=True),
        *(write_run(root / f"g{g}", marks, models=PAIR, gamma=g, trace=True, seed=7) for g in (8, "auto", 1)),
        write_run(root / "arc", marks, models=PAIR, gamma=8, data_name="arc"),
    ]
    return [read_run(folder) for folder in folders]


def test_every_figure_is_written_as_png_and_pdf(runs, tmp_path, capsys):
    assert plots.main([*(str(run.folder) for run in runs), "--to", str(tmp_path / "made" / "here")]) == 0
    files = {path.name: path.read_bytes()[:4] for path in (tmp_path / "made" / "here").iterdir()}
    assert files == {f"{name}.png": b"\x89PNG" for name in plots.FIGURES} | {
        f"{name}.pdf": b"%PDF" for name in plots.FIGURES
    }
    assert len(capsys.readouterr().out.splitlines()) == 2 * len(plots.FIGURES)


def test_what_has_no_data_is_left_out_and_named(runs, tmp_path, capsys):
    assert plots.main([str(runs[0].folder), "--to", str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {"latency", "time"}
    assert "no gamma figure: no runs differ only in gamma" in capsys.readouterr().out


def test_no_run_is_an_error_of_one_line(tmp_path, capsys):
    assert plots.main([str(tmp_path), "--to", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_every_axis_has_a_label_and_every_run_a_name(runs):
    for make, _ in plots.FIGURES.values():
        figure = make(runs)
        assert all(axes.get_xlabel() or figure.get_supxlabel() for axes in figure.axes)
    names = {text.get_text() for text in plots.latency(runs).legends[0].get_texts()}
    assert names == {"a", "UniTE", *(f"UniTE+SAFE, gamma {g}" for g in (8, "auto", 1))}


def test_latency_shows_every_answer(runs):
    panel = plots.latency(runs).axes[0]
    drawn = sum(len(points.get_offsets()) for points in panel.collections)
    assert drawn == sum(len(run.predictions) for run in runs if run.dataset == "gsm8k")


def test_gamma_is_in_order_and_auto_stands_apart(runs):
    left, right = plots.gamma(runs).axes
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["1", "8", "auto"]
    joined = [line for line in right.lines if line.get_linestyle() == "-"]
    assert [len(line.get_xdata()) for line in joined] == [2]


def test_position_agrees_with_the_rate_of_the_run(runs):
    traced = [run for run in runs if run.folder.name == "g8"]
    places = plots._places(traced[0])
    assert len(places) == traced[0].tokens
    assert places[:, 2].mean() == pytest.approx(traced[0].ensemble_rate)
    assert places[:, 1].min() > 0 and places[:, 1].max() < 100


def test_shares_of_time_add_up(runs):
    shares = [plots._share_of_time(runs[0], part) for part in (*plots.PARTS, "other")]
    assert sum(shares) == pytest.approx(100)


def test_answers_of_no_tokens_leave_no_figure_broken(tmp_path):
    folder = write_run(tmp_path / "out", [False], lines={0: {"tokens": 0, "seconds": 0.0}})
    written, left_out = plots.draw([read_run(folder)], tmp_path / "figures")
    assert not written and set(left_out) == set(plots.FIGURES)
