"""Figures of runs: `python -m eval.plots OUT... [--to FOLDER]`, each as PNG and PDF at the width of a paper's text.

latency   seconds of an answer against its tokens (the paper's Figure 5)
ensembled share of tokens that were ensembled, by dataset
gamma     accuracy and latency over gamma, for runs that differ in it
position  where in an answer ensembling happens, for runs with --trace
time      share of time spent drafting, verifying, tokenizing and ensembling
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eval.records import OutputError
from eval.runs import PARTS, Run, labels, read_run, short_names

# Okabe and Ito's colours, told apart by readers who see red and green alike; markers tell them apart in grey
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P")  # one fewer than colours: pairs repeat only after 42
STYLE = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 7, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#dddddd", "grid.linewidth": 0.5, "axes.axisbelow": True, "lines.linewidth": 1.2,
    "lines.markersize": 4, "savefig.dpi": 200, "pdf.fonttype": 42, "legend.frameon": False,
}  # fmt: skip
PAGE = 6.8  # inches: the width of a page's text
PANEL = 2.2  # inches: the height of a panel
LEAST_TOKENS = 10  # a place in the answer is drawn where at least so many tokens stand


@dataclass(frozen=True)
class Series:
    """Runs drawn alike. label: as the legend names them."""

    label: str
    runs: tuple[Run, ...]
    colour: str
    marker: str


def latency(runs: Sequence[Run]) -> Figure | None:
    """Seconds of every answer against its tokens, a panel a dataset; lines are medians of equal shares of answers."""
    if not runs:
        return None
    figure, panels = _panels(_datasets(runs))
    for series in _series(runs):
        for run in series.runs:
            tokens = np.array([line["tokens"] for line in run.predictions.values()])
            seconds = np.array([line["seconds"] for line in run.predictions.values()])
            axes = panels[run.dataset]
            axes.scatter(tokens, seconds, s=3, alpha=0.25, color=series.colour, linewidths=0, rasterized=True)
            edges = np.unique(np.quantile(tokens, np.linspace(0, 1, 9)))[1:-1]
            shares = [np.digitize(tokens, edges) == share for share in range(len(edges) + 1)]
            middles = [(np.median(tokens[s]), np.median(seconds[s])) for s in shares if s.any()]
            axes.plot(*zip(*middles, strict=True), color=series.colour, marker=series.marker, label=series.label)
    for dataset, axes in panels.items():
        axes.set(title=dataset, xlabel="tokens of the answer", ylabel="seconds", xlim=(0, None))
        _from_zero(axes)
    _legend(figure)
    return figure


def ensembled(runs: Sequence[Run]) -> Figure | None:
    """E/T of every ensemble as a bar, a panel a dataset; None if all runs are single models."""
    series = [s for s in _series(runs) if not s.runs[0].is_single]
    datasets = _datasets([run for s in series for run in s.runs])
    if not series:
        return None
    figure = Figure((PAGE, 0.8 + 0.22 * len(series)), layout="constrained")
    panels = dict(zip(datasets, np.ravel(figure.subplots(1, len(datasets), sharey=True, sharex=True)), strict=True))
    for place, one in enumerate(series):
        for run in one.runs:
            rate = 100 * (run.ensemble_rate or 0.0)
            panels[run.dataset].barh(place, rate, color=one.colour, height=0.7)
            panels[run.dataset].text(rate, place, f" {rate:.1f}", va="center", fontsize=7)
    for dataset, axes in panels.items():
        axes.set(title=dataset, yticks=range(len(series)), yticklabels=[one.label for one in series])
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.3)
        axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= 100])
    figure.supxlabel("tokens ensembled, %", fontsize=8)
    next(iter(panels.values())).invert_yaxis()
    return figure


def gamma(runs: Sequence[Run]) -> Figure | None:
    """Accuracy (95% Wilson interval) and latency of runs that differ only in gamma; None if there are none."""
    runs = [run for run in runs if not run.is_single and run.config["schedule"] == "safe"]
    swept = [one for one in _series(runs, but="gamma", by_dataset=True) if len(one.runs) > 1]
    values = sorted({run.config["gamma"] for one in swept for run in one.runs}, key=lambda g: (g == "auto", g))
    if not swept:
        return None
    figure = Figure((PAGE, PANEL), layout="constrained")
    above, below = figure.subplots(1, 2)
    for shift, one in zip(np.linspace(-0.1, 0.1, len(swept)), swept, strict=True):
        ordered = sorted(one.runs, key=lambda run: values.index(run.config["gamma"]))
        x = np.array([values.index(run.config["gamma"]) for run in ordered]) + (shift if len(swept) > 1 else 0)
        y = np.array([100 * run.accuracy for run in ordered])
        bounds = np.abs(100 * np.array([run.interval for run in ordered]).T - y)
        latencies = [1000 * run.seconds / run.tokens for run in ordered]
        fixed = sum(run.config["gamma"] != "auto" for run in ordered)  # "auto" is no place on a line
        style = {"color": one.colour, "marker": one.marker}
        above.errorbar(x, y, bounds, capsize=2, elinewidth=0.8, linestyle="", **style)
        below.plot(x, latencies, linestyle="", **style)
        for axes, found in ((above, y), (below, latencies)):
            axes.plot(x[:fixed], found[:fixed], label=one.label, **style)
    for axes, name in ((above, "accuracy, %"), (below, "milliseconds per token")):
        axes.set(xticks=range(len(values)), xticklabels=values, xlabel="gamma, tokens", ylabel=name)
    _from_zero(below)
    _legend(figure)
    return figure


def position(runs: Sequence[Run]) -> Figure | None:
    """Share of tokens ensembled at each place of the answers, counted from the start and as a share of the answer;
    None if no run has a trace. Runs that ensemble every token have nothing to show."""
    places = {run.folder: _places(run) for run in runs if not run.is_single and (run.ensemble_rate or 0.0) < 0.99}
    places = {folder: found for folder, found in places.items() if len(found)}
    if not places:
        return None
    figure = Figure((PAGE, PANEL), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    longest = max(found[:, 0].max() for found in places.values()) + 1
    for one in _series(runs, by_dataset=True):
        found = np.concatenate([np.empty((0, 3)), *(places.get(run.folder, np.empty((0, 3))) for run in one.runs)])
        if not len(found):
            continue
        style = {"color": one.colour, "marker": one.marker, "label": one.label}
        for axes, column, edges in (
            (left, 0, np.linspace(0, longest, 13)),
            (right, 1, np.linspace(0, 100, 11)),
        ):
            axes.plot(*_share_by_bin(found[:, column], found[:, 2], edges), **style)
    if not any(len(line.get_xdata()) for axes in (left, right) for line in axes.lines):
        return None
    left.set(xlabel="token of the answer", ylabel="tokens ensembled, %", xlim=(0, longest))
    right.set(xlabel="place in the answer, % of its tokens", xlim=(0, 100))
    _from_zero(left)
    _legend(figure)
    return figure


def time(runs: Sequence[Run]) -> Figure | None:
    """Share of time in each part of decoding, a bar a run, and milliseconds per token beside it."""
    runs = [run for run in runs if run.seconds]
    if not runs:
        return None
    several = len(_datasets(runs)) > 1
    names = [f"{one.label}, {run.dataset}" if several else one.label for one in _series(runs) for run in one.runs]
    runs = [run for one in _series(runs) for run in one.runs]
    figure = Figure((PAGE, 0.75 + 0.22 * len(runs)), layout="constrained")
    axes = figure.subplots()
    colours = dict(zip((*PARTS, "other"), ("#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#bbbbbb"), strict=True))
    starts = np.zeros(len(runs))
    for part, colour in colours.items():
        shares = np.array([_share_of_time(run, part) for run in runs])
        axes.barh(range(len(runs)), shares, left=starts, color=colour, label=part, height=0.7)
        for place, (start, share) in enumerate(zip(starts, shares, strict=True)):
            if share >= 5:
                ink = "white" if part in ("draft", "ensemble") else "black"
                axes.text(start + share / 2, place, f"{share:.0f}", ha="center", va="center", fontsize=6.5, color=ink)
        starts += shares
    for place, run in enumerate(runs):
        axes.text(101, place, f"{_figure(1000 * run.seconds / run.tokens)} ms per token", va="center", fontsize=7)
    axes.set(xlabel="share of time, %", xlim=(0, 100), yticks=range(len(runs)), yticklabels=names)
    axes.grid(visible=False)
    axes.invert_yaxis()
    _legend(figure)
    return figure


FIGURES: dict[str, tuple[Callable[[Sequence[Run]], Figure | None], str]] = {
    "latency": (latency, "no runs"),
    "ensembled": (ensembled, "no run ensembles"),
    "gamma": (gamma, "no runs differ only in gamma"),
    "position": (position, "no ensembling run has a trace (--trace) of enough tokens"),
    "time": (time, "no run took any time"),
}


def draw(runs: Sequence[Run], folder: Path) -> tuple[list[Path], dict[str, str]]:
    """Write every figure the runs have data for (a run of no tokens has none). Returns the files, and figure -> why it
    was left out."""
    runs = [run for run in runs if run.tokens]
    folder.mkdir(parents=True, exist_ok=True)
    written, left_out = [], {}
    with matplotlib.rc_context(STYLE):
        for name, (make, missing) in FIGURES.items():
            figure = make(runs)
            if figure is None:
                left_out[name] = missing
                continue
            for kind in ("png", "pdf"):
                written.append(folder / f"{name}.{kind}")
                figure.savefig(written[-1])
    return written, left_out


def _datasets(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.dataset for run in runs))


def _series(runs: Sequence[Run], but: str | None = None, by_dataset: bool = False) -> list[Series]:
    """The runs of one label together, single models first. but: a setting that makes no label of its own."""
    short = short_names(runs)
    several = len({run.models for run in runs if not run.is_single}) > 1
    datasets = _datasets(runs) if by_dataset else []
    groups: dict[str, list[Run]] = {}
    for run, method in sorted(zip(runs, labels(runs, but), strict=True), key=lambda pair: not pair[0].is_single):
        models = " + ".join(short[model] for model in run.models)
        label = models + method.removeprefix("single") if run.is_single else method
        label = f"{models}: {method}" if several and not run.is_single else label
        groups.setdefault(f"{label}, {run.dataset}" if len(datasets) > 1 else label, []).append(run)
    looks = zip(cycle(COLOURS), cycle(MARKERS), strict=False)
    return [Series(label, tuple(group), *look) for (label, group), look in zip(groups.items(), looks, strict=False)]


def _panels(datasets: Sequence[str]) -> tuple[Figure, dict[str, Axes]]:
    columns = min(3, len(datasets))
    rows = -(-len(datasets) // columns)
    figure = Figure((min(PAGE, 3.4 * columns), PANEL * rows), layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns))
    for spare in axes[len(datasets) :]:
        spare.remove()
    return figure, dict(zip(datasets, axes, strict=False))


def _from_zero(axes: Axes) -> None:
    """Let the y axis start at 0 and end a little above what is drawn."""
    axes.set_ylim(0, 1.05 * axes.get_ylim()[1])


def _legend(figure: Figure) -> None:
    """One legend below all panels, each label once; the figure grows by its lines."""
    found = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    longest = max(map(len, found))
    columns = max(1, int(figure.get_figwidth() * 17 // (longest + 8)))
    columns = min(columns, len(found))
    figure.set_figheight(figure.get_figheight() + 0.17 * -(-len(found) // columns))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns)


def _places(run: Run) -> np.ndarray:
    """For each of the T tokens of the run's trace: its number in the answer, its place in % of the answer, and 1 if it
    was ensembled: (T, 3)."""
    rows = [
        (number, 100 * (number + 0.5) / len(line["tokens"]), token["verdict"] == "ensembled")
        for line in run.trace()
        for number, token in enumerate(line["tokens"])
    ]
    return np.array(rows, dtype=float).reshape(-1, 3)


def _share_by_bin(places: np.ndarray, marks: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Middle of each bin that holds enough tokens, and the share of its tokens that are marked, in %."""
    tokens, marked = np.histogram(places, edges)[0], np.histogram(places, edges, weights=marks)[0]
    kept = tokens >= LEAST_TOKENS
    return ((edges[:-1] + edges[1:]) / 2)[kept], 100 * marked[kept] / tokens[kept]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def _share_of_time(run: Run, part: str) -> float:
    """In %; "other" is what the parts leave of the total."""
    seconds = {p: sum(line["seconds_by_part"][p] for line in run.predictions.values()) for p in PARTS}
    seconds["other"] = max(0.0, run.seconds - sum(seconds.values()))
    return 100 * seconds[part] / sum(seconds.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Write the figures; 2 and one line on stderr if a folder holds no run."""
    parser = argparse.ArgumentParser(prog="python -m eval.plots", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="OUT", help="output folders")
    parser.add_argument("--to", type=Path, default=Path("figures"), help="folder of the figures (figures)")
    args = parser.parse_args(argv)
    try:
        written, left_out = draw([read_run(folder) for folder in args.folders], args.to)
    except (OutputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path in written:
        print(path)
    for name, reason in left_out.items():
        print(f"no {name} figure: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
