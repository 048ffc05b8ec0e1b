"""From the lines of a run to its summary (SPEC 9 and 11)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from statsmodels.stats.proportion import proportion_confint

from eval.runs import PARTS

VERDICTS = ("oov", "unanimous", "confident", "gated", "ensembled", "changed")


def accuracy_interval(correct: int, n: int) -> list[float] | None:
    """The 95% Wilson interval of a share; None of nothing."""
    return [float(bound) for bound in proportion_confint(correct, n, method="wilson")] if n else None


class Tally:
    """What the lines of a run come to, counted as they come in.

    correct and questions are those of the headline; lines with a repaired gold (MMLU-Redux) are counted beside it.
    Tokens, passes and seconds are those of all lines: the run spent them.
    """

    def __init__(self):
        self.questions = self.correct = self.repaired = self.repaired_correct = 0
        self.unanswered = self.tokens = self.drafted = self.peak_memory = 0
        self.endings: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter(dict.fromkeys(VERDICTS, 0))
        self.seconds: dict[str, float] = dict.fromkeys((*PARTS, "total"), 0.0)
        self.passes: list[int] = []

    def add(self, line: Mapping) -> None:
        """Count a line of predictions.jsonl."""
        if line.get("repaired"):
            self.repaired += 1
            self.repaired_correct += line["correct"]
        else:
            self.questions += 1
            self.correct += line["correct"]
            self.unanswered += line["prediction"] is None
            self.endings[line["finish_reason"]] += 1
        self.tokens += line["tokens"]
        self.drafted += line["drafted"]
        self.peak_memory = max(self.peak_memory, line["peak_memory_bytes"])
        self.verdicts.update(line["verdicts"])
        for part in PARTS:
            self.seconds[part] += line["seconds_by_part"][part]
        self.seconds["total"] += line["seconds"]
        self.passes = self.passes or [0] * len(line["forward_passes"])
        self.passes = [a + b for a, b in zip(self.passes, line["forward_passes"], strict=True)]

    @property
    def accuracy(self) -> float | None:
        """Share of the headline questions that are right, 0..1."""
        return self.correct / self.questions if self.questions else None

    @property
    def ensemble_rate(self) -> float:
        """E/T, 0..1."""
        return self.verdicts["ensembled"] / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens of the responses over seconds of decoding, of one process."""
        return self.tokens / self.seconds["total"] if self.seconds["total"] else None

    def summary(self) -> dict:
        """The keys of summary.json that a whole run and a subject have."""
        summary = {
            "questions": self.questions,
            "accuracy": self.accuracy,
            "accuracy_interval": accuracy_interval(self.correct, self.questions),
            "unanswered": self.unanswered,
            "cut_off": self.endings["length"],
            "beyond_context": self.endings["context"],
            "tokens": self.tokens,
            "ensembled": self.verdicts["ensembled"],
            "ensemble_rate": self.ensemble_rate,
            "verdicts": {name: self.verdicts[name] for name in VERDICTS},
            "forward_passes": self.passes,
            "drafted": self.drafted,
            "tokens_per_second": self.tokens_per_second,
            "seconds": dict(self.seconds),
            "peak_memory_bytes": self.peak_memory,
        }
        if self.repaired:
            correct, n = self.correct + self.repaired_correct, self.questions + self.repaired
            summary["questions_repaired"] = self.repaired
            summary["accuracy_repaired"] = correct / n
            summary["accuracy_repaired_interval"] = accuracy_interval(correct, n)
        return summary


def summarize(lines: Iterable[Mapping], skipped: Sequence[Mapping] = ()) -> dict:
    """summary.json: of all lines and, where there are subjects, of each.

    Beside the keys of SPEC 11: beyond_context, questions whose prompt left some model no room; skipped, the rows that
    were not asked, their number and ids by reason; accuracy_mean_over_questions and accuracy_mean_over_subjects;
    questions_repaired, rows whose wrong gold was mended, and accuracy_repaired, of the headline questions and these.
    skipped: {"id", "reason"} of each row.
    """
    overall, subjects = Tally(), {}
    for line in lines:
        overall.add(line)
        if line["subject"] is not None:
            subjects.setdefault(line["subject"], Tally()).add(line)
    summary = overall.summary()
    reasons: dict[str, list[str]] = {}
    for row in skipped:
        reasons.setdefault(row["reason"], []).append(row["id"])
    summary["skipped"] = {reason: {"rows": len(ids), "ids": ids} for reason, ids in reasons.items()}
    if subjects:
        known = [tally.accuracy for tally in subjects.values() if tally.accuracy is not None]
        summary["accuracy_mean_over_questions"] = overall.accuracy
        summary["accuracy_mean_over_subjects"] = sum(known) / len(known) if known else None
        summary["subjects"] = {name: subjects[name].summary() for name in sorted(subjects)}
    return summary
