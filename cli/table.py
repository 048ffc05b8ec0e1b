"""The short table at the end of a run."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from eval.runs import PARTS, Run, short_names

VERDICTS = ("unanimous", "confident", "oov", "gated", "ensembled")
Row = tuple[str, str, str]  # a figure's name, the figure, what else there is to say


def closing_table(summary: Mapping, settings: Mapping, folder: Path) -> str:
    """What a run came to, for the terminal."""
    run = Run(folder, dict(settings), {}, {})
    names = [short_names([run])[name] for name in run.models]
    title = f"{' + '.join(names)} on {run.dataset}" + ("" if run.is_single else f", {run.method}")
    rows = [*_accuracy(summary), *_tokens(summary, run.is_single), *_cost(summary, names)]
    made = [name for name in ("predictions.jsonl", "summary.json", "report.html") if (folder / name).exists()]
    parts = [title, _aligned(rows), _subjects(summary), f"{folder}: {', '.join(made)}"]
    return "\n\n".join(part for part in parts if part)


def _accuracy(summary: Mapping) -> list[Row]:
    rows = []
    if "subjects" in summary:
        subjects = f"of {len(summary['subjects'])} subjects"
        rows.append(("accuracy, mean over subjects", _percent(summary["accuracy_mean_over_subjects"]), subjects))
    name = "accuracy, mean over questions" if rows else "accuracy"
    rows.append((name, *_share(summary, "accuracy", summary["questions"])))
    if "accuracy_repaired" in summary:
        n = summary["questions"] + summary["questions_repaired"]
        share, remark = _share(summary, "accuracy_repaired", n)
        rows.append(("with mended golds", share, f"{remark}, {summary['questions_repaired']} of them mended"))
    rows.append(("no answer found", f"{summary['unanswered']:,}", ""))
    rows.append(("cut off", f"{summary['cut_off']:,}", ""))
    if summary["beyond_context"]:
        rows.append(
            ("prompt too long", f"{summary['beyond_context']:,}", "no room for an answer in some model's context")
        )
    for reason, skipped in summary["skipped"].items():
        rows.append(("row not asked" if skipped["rows"] == 1 else "rows not asked", f"{skipped['rows']:,}", reason))
    return rows


def _tokens(summary: Mapping, single: bool) -> list[Row]:
    if single:
        return [("tokens", f"{summary['tokens']:,}", "")]
    verdicts, tokens = summary["verdicts"], max(summary["tokens"], 1)
    shares = ", ".join(f"{name} {_percent(verdicts[name] / tokens)}" for name in VERDICTS if verdicts[name])
    ensembled = f"{verdicts['ensembled']:,} ensembled, of which {verdicts['changed']:,} changed"
    return [
        ("tokens", f"{summary['tokens']:,}", f"{summary['drafted']:,} drafted"),
        ("E/T", _percent(summary["ensemble_rate"]), ensembled),
        ("verdicts", "", shares),
    ]


def _cost(summary: Mapping, names: Iterable[str]) -> list[Row]:
    speed, seconds = summary["tokens_per_second"], summary["seconds"]
    passes = ", ".join(f"{name} {n:,}" for name, n in zip(names, summary["forward_passes"], strict=False))
    total = max(seconds["total"], 1e-9)
    parts = ", ".join(f"{part} {_percent(seconds[part] / total)}" for part in PARTS if seconds[part])
    return [
        ("forward passes", "", passes),
        ("tokens per second", "-" if speed is None else f"{speed:,.1f}", ""),
        ("seconds", f"{seconds['total']:,.1f}", parts),
        ("peak memory", f"{summary['peak_memory_bytes'] / 2**30:,.2f} GiB", ""),
    ]


def _subjects(summary: Mapping) -> str:
    if "subjects" not in summary:
        return ""
    rows = []
    for name, part in summary["subjects"].items():
        share, remark = _share(part, "accuracy", part["questions"])
        rows.append((name, share, f"{remark}; E/T {_percent(part['ensemble_rate'])}"))
    return _aligned(rows)


def _aligned(rows: Iterable[Row]) -> str:
    """Three columns; a row without a figure begins with its remark."""
    rows = list(rows)
    names, figures = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(
        (f"{name:{names}}  {figure:>{figures}}  {remark}" if figure else f"{name:{names}}  {remark}").rstrip()
        for name, figure, remark in rows
    )


def _share(summary: Mapping, key: str, n: int) -> tuple[str, str]:
    """An accuracy, and its interval and n."""
    if summary[key] is None:
        return "-", "no question"
    low, high = summary[f"{key}_interval"]
    return _percent(summary[key]), f"95% interval {100 * low:.1f} to {100 * high:.1f}, n = {n:,}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"
