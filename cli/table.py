"""The short table at the end of a run."""

from pathlib import Path

VERDICTS = ("oov", "unanimous", "confident", "gated", "ensembled")


def closing_table(summary: dict, folder: Path) -> str:
    """What a run came to, for the terminal."""
    rows = [("accuracy", _share(summary, "accuracy", "questions"))]
    if "accuracy_mean_over_subjects" in summary:
        rows.append(("mean over subjects", _percent(summary["accuracy_mean_over_subjects"])))
    if "accuracy_repaired" in summary:
        rows.append(
            ("with repaired golds", _share(summary, "accuracy_repaired", "questions_repaired", plus="questions"))
        )
    rows.append(("no answer, cut off", f"{summary['unanswered']}, {summary['cut_off']}"))
    if summary["beyond_context"]:
        rows.append(("prompt too long", str(summary["beyond_context"])))
    if summary["skipped"]:
        reasons = ", ".join(f"{n} {reason}" for reason, n in summary["skipped"].items())
        rows.append(("rows not asked", reasons))
    if len(summary["forward_passes"]) > 1:
        shares = ", ".join(f"{name} {_percent(_over(summary['verdicts'][name], summary))}" for name in VERDICTS)
        changed = summary["verdicts"]["changed"]
        rows.append(("E/T", f"{_percent(summary['ensemble_rate'])} of {summary['tokens']} tokens, {changed} changed"))
        rows.append(("verdicts", shares))
    passes = " + ".join(map(str, summary["forward_passes"]))
    rows.append(("forward passes", f"{passes}, {summary['drafted']} tokens drafted"))
    speed = summary["tokens_per_second"]
    rows.append(("tokens/s", f"{speed:.1f}" if speed else "-"))
    seconds = ", ".join(f"{part} {spent:.1f}" for part, spent in summary["seconds"].items())
    rows.append(("seconds", seconds))
    rows.append(("peak memory", f"{summary['peak_memory_bytes'] / 2**30:.2f} GiB"))
    rows.append(("files", str(folder)))
    text = "\n".join(f"{name:20} {value}" for name, value in rows)
    return f"{text}\n{_subjects(summary)}" if summary.get("subjects") else text


def _subjects(summary: dict) -> str:
    width = max(map(len, summary["subjects"]))
    lines = [f"{name:{width}}  {_share(part, 'accuracy', 'questions')}" for name, part in summary["subjects"].items()]
    return "\n".join(["", *lines])


def _share(summary: dict, key: str, count: str, plus: str | None = None) -> str:
    """An accuracy with its interval and its n."""
    n = summary[count] + (summary[plus] if plus else 0)
    if summary[key] is None:
        return f"- (n={n})"
    low, high = summary[f"{key}_interval"]
    return f"{_percent(summary[key])} [{100 * low:.1f}, {100 * high:.1f}] (n={n})"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"


def _over(count: int, summary: dict) -> float | None:
    return count / summary["tokens"] if summary["tokens"] else None
