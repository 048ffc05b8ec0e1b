"""From the lines of a run to its summary (SPEC 9 and 11)."""

from collections.abc import Sequence
from statistics import mean

from statsmodels.stats.proportion import proportion_confint

from eval.runs import PARTS

VERDICTS = ("oov", "unanimous", "confident", "gated", "ensembled", "changed")


def accuracy_interval(correct: int, n: int) -> list[float] | None:
    """The 95% Wilson interval of a share; None of nothing."""
    return [float(bound) for bound in proportion_confint(correct, n, method="wilson")] if n else None


def summarize(lines: Sequence[dict], skipped: Sequence[str] = ()) -> dict:
    """The summary of all lines, and of each subject where there are any.

    Accuracies are of the headline questions; questions with a repaired gold (MMLU-Redux) are in a second figure, and
    in the counts of tokens and time. skipped: the reasons of the rows that were not asked."""
    summary = _summary(lines)
    reasons = sorted(set(skipped))
    summary["skipped"] = {reason: list(skipped).count(reason) for reason in reasons}
    subjects = sorted({line["subject"] for line in lines if line["subject"] is not None})
    if subjects:
        parts = {s: _summary([line for line in lines if line["subject"] == s]) for s in subjects}
        known = [part["accuracy"] for part in parts.values() if part["accuracy"] is not None]
        summary["accuracy_mean_over_questions"] = summary["accuracy"]
        summary["accuracy_mean_over_subjects"] = mean(known) if known else None
        summary["subjects"] = parts
    return summary


def _summary(lines: Sequence[dict]) -> dict:
    headline = [line for line in lines if not line.get("repaired")]
    correct = sum(line["correct"] for line in headline)
    tokens = sum(line["tokens"] for line in lines)
    verdicts = {name: sum(line["verdicts"][name] for line in lines) for name in VERDICTS}
    seconds = {part: sum(line["seconds_by_part"][part] for line in lines) for part in PARTS}
    seconds["total"] = sum(line["seconds"] for line in lines)
    summary = {
        "questions": len(headline),
        "accuracy": correct / len(headline) if headline else None,
        "accuracy_interval": accuracy_interval(correct, len(headline)),
        "unanswered": sum(line["prediction"] is None for line in headline),
        "cut_off": sum(line["finish_reason"] == "length" for line in headline),
        "beyond_context": sum(line["finish_reason"] == "context" for line in headline),
        "tokens": tokens,
        "ensembled": verdicts["ensembled"],
        "ensemble_rate": verdicts["ensembled"] / tokens if tokens else 0.0,
        "verdicts": verdicts,
        "forward_passes": [sum(passes) for passes in zip(*(line["forward_passes"] for line in lines), strict=True)],
        "drafted": sum(line["drafted"] for line in lines),
        "tokens_per_second": tokens / seconds["total"] if seconds["total"] else None,
        "seconds": seconds,
        "peak_memory_bytes": max((line["peak_memory_bytes"] for line in lines), default=0),
    }
    if len(headline) < len(lines):
        right = sum(line["correct"] for line in lines)
        summary |= {
            "questions_repaired": len(lines) - len(headline),
            "accuracy_repaired": right / len(lines),
            "accuracy_repaired_interval": accuracy_interval(right, len(lines)),
        }
    return summary
