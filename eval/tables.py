"""A comparison written as Markdown, LaTeX or CSV."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass

from eval.comparison import Comparison, Named, Test

Cells = list[str]


@dataclass(frozen=True)
class Table:
    """A titled table of text, `left` columns of it words and the rest figures."""

    title: str
    head: Cells
    rows: list[Cells]
    left: int


def markdown(comparison: Comparison) -> str:
    """Tables for a README or a notebook."""
    parts = []
    for table in _tables(comparison):
        rule = ["---"] * table.left + ["--:"] * (len(table.head) - table.left)
        lines = ["| " + " | ".join(_escape_pipes(row)) + " |" for row in [table.head, rule, *table.rows]]
        parts.append(f"**{table.title}**\n\n" + "\n".join(lines) + "\n")
    notes = [f"- {note}\n" for note in comparison.notes]
    return "\n".join(parts + (["".join(notes)] if notes else []))


def latex(comparison: Comparison) -> str:
    """Tables for a paper; they need the package booktabs."""
    parts = []
    for table in _tables(comparison):
        lines = [" & ".join(map(_escape_latex, row)) + r" \\" for row in [table.head, *table.rows]]
        columns = "l" * table.left + "r" * (len(table.head) - table.left)
        parts.append(
            "\\begin{table}\n\\centering\n"
            f"\\caption{{{_escape_latex(table.title)}}}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{lines[0]}\n"
            "\\midrule\n" + "\n".join(lines[1:]) + "\n\\bottomrule\n\\end{tabular}\n\\end{table}\n"
        )
    return "\n".join(parts + [f"% {note}\n" for note in comparison.notes])


def as_csv(comparison: Comparison) -> str:
    """One line a run with every figure; the columns of a test are empty where there was none."""
    tests = {id(test.run): {} for test in comparison.tests}
    for test in comparison.tests:
        tests[id(test.run)]["best_single" if test.is_best_single else "baseline"] = test
    lines = [_csv_line(named, tests.get(id(named), {})) for named in comparison.runs]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


FORMATS: dict[str, Callable[[Comparison], str]] = {"markdown": markdown, "csv": as_csv, "latex": latex}


def _tables(comparison: Comparison) -> list[Table]:
    tables = [_accuracy(comparison), _cost(comparison)]
    return tables + ([_tests(comparison)] if comparison.tests else [])


def _accuracy(comparison: Comparison) -> Table:
    datasets = comparison.datasets
    sizes = {d: {len(n.run.predictions) for n in comparison.runs if n.run.dataset == d} for d in datasets}
    head = [f"{d} (n = {min(sizes[d])})" if len(sizes[d]) == 1 else d for d in datasets]
    rows = []
    for (models, method), cells in comparison.rows.items():
        texts = [_accuracy_cell(comparison, cells.get(d), len(sizes[d]) > 1) for d in datasets]
        mean = f"{100 * sum(c.run.accuracy for c in cells.values()) / len(datasets):.1f}"
        texts += [mean if len(cells) == len(datasets) else "–"] if len(datasets) > 1 else []
        rows.append([" + ".join(models), method, *texts])
    title = "Accuracy in %, with its 95% Wilson interval, and the gap to the best single model in points"
    return Table(title, ["models", "method", *head, *(["mean"] if len(datasets) > 1 else [])], rows, 2)


def _accuracy_cell(comparison: Comparison, named: Named | None, with_n: bool) -> str:
    if named is None:
        return "–"
    low, high = named.run.interval
    best = comparison.best_single(named)
    gap = f" ({_signed(best.result.difference)})" if best else ""
    n = f" n = {len(named.run.predictions)}" if with_n else ""
    return f"{100 * named.run.accuracy:.1f} [{100 * low:.1f}, {100 * high:.1f}]{gap}{n}"


def _cost(comparison: Comparison) -> Table:
    rows = [
        [" + ".join(models), method, *(_cost_cell(cells.get(d)) for d in comparison.datasets)]
        for (models, method), cells in comparison.rows.items()
    ]
    title = "Share of tokens that were ensembled (E/T), and tokens per second"
    return Table(title, ["models", "method", *comparison.datasets], rows, 2)


def _cost_cell(named: Named | None) -> str:
    if named is None:
        return "–"
    rate, speed = named.run.ensemble_rate, named.run.tokens_per_second
    parts = [f"{100 * rate:.1f}%"] if rate is not None else []
    return "; ".join(parts + ([f"{speed:,.0f}/s" if speed >= 100 else f"{speed:.1f}/s"] if speed else [])) or "–"


def _tests(comparison: Comparison) -> Table:
    head = ["run", "against", "data", "n", "only run right", "only other right", "difference, points [95%]",
            "McNemar p", "p, corrected"]  # fmt: skip
    rows = [_test_row(test) for test in comparison.tests]
    title = (
        "Paired on the same questions: exact McNemar test, paired bootstrap interval, Holm's correction for "
        f"{len(rows)} test(s)"
    )
    return Table(title, head, rows, 3)


def _test_row(test: Test) -> Cells:
    result = test.result
    interval = " to ".join(map(_signed, result.interval)) if result.interval else "–"
    against = test.against.title + (" (best single)" if test.is_best_single else "")
    counts = [str(count) for count in (result.n, result.only_b, result.only_a)]
    difference = f"{_signed(result.difference)} [{interval}]"
    return [test.run.title, against, test.run.run.dataset, *counts, difference, _p(result.p), _p(test.p_holm)]


def _csv_line(named: Named, tests: dict[str, Test]) -> dict:
    run = named.run
    low, high = run.interval
    line = {
        "models": " + ".join(named.models), "method": named.method, "dataset": run.dataset,
        "n": len(run.predictions), "correct": run.correct, "accuracy": run.accuracy, "accuracy_low": low,
        "accuracy_high": high, "ensemble_rate": run.ensemble_rate, "tokens": run.tokens,
        "tokens_per_second": run.tokens_per_second,
    }  # fmt: skip
    for kind in ("best_single", "baseline"):
        test = tests.get(kind)
        found = asdict(test.result) if test else {}
        bounds = found.get("interval") or (None, None)
        line[f"{kind}"] = test.against.title if test else None
        line |= {f"{kind}_{key}": found.get(key) for key in ("n", "only_a", "only_b", "difference")}
        line |= {f"{kind}_low": bounds[0], f"{kind}_high": bounds[1]}
        line |= {f"{kind}_p": found.get("p"), f"{kind}_p_holm": test.p_holm if test else None}
    line["folder"] = str(run.folder)
    return line


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}"


def _p(p: float) -> str:
    return f"{p:.2g}" if p >= 0.0001 else "< 0.0001"


def _escape_pipes(row: Cells) -> Cells:
    return [cell.replace("|", r"\|") for cell in row]


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "<": r"$<$",
} | {char: "\\" + char for char in "&%$#_{}"}  # fmt: skip


def _escape_latex(text: str) -> str:
    return re.sub(r"[\\~^–<&%$#_{}]", lambda found: _LATEX[found[0]], text)
