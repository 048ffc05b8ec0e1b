"""Runs paired on the questions they share: every ensemble against the best single one of its own models, and every
run against a baseline if one is named."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eval.paired import Paired, holm, paired
from eval.records import OutputError
from eval.runs import Run, labels, read_run, short_names

CONFOUNDS = ("max_new_tokens", "dtype", "device", "batch_size")
SHOWN_IDS = 5


@dataclass(frozen=True)
class Named:
    """A run and how tables call it. models: short names, the drafter first."""

    run: Run
    models: tuple[str, ...]
    method: str

    @property
    def title(self) -> str:
        """The run in one line."""
        models = " + ".join(self.models)
        return models if self.method == "single" else f"{models}: {self.method}"


@dataclass(frozen=True)
class Test:
    """A run against another on shared questions. p_holm: its p, corrected for all tests of the comparison."""

    run: Named
    against: Named
    is_best_single: bool
    result: Paired
    p_holm: float


@dataclass(frozen=True)
class Comparison:
    """What a table shows. tests: those against the best single model first. notes: what a reader must know."""

    runs: tuple[Named, ...]
    tests: tuple[Test, ...]
    notes: tuple[str, ...]

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(named.run.dataset for named in self.runs))

    @property
    def rows(self) -> dict[tuple[tuple[str, ...], str], dict[str, Named]]:
        """(models, method) -> dataset -> run; single models first."""
        rows: dict = {}
        for named in sorted(self.runs, key=lambda named: len(named.models) > 1):
            rows.setdefault((named.models, named.method), {})[named.run.dataset] = named
        return rows

    def best_single(self, named: Named) -> Test | None:
        """The test of a run against the best single one of its models, if there is one."""
        return next((test for test in self.tests if test.is_best_single and test.run is named), None)


def compare(folders: Sequence[Path], baselines: Sequence[Path] = (), *, shared: bool = False) -> Comparison:
    """Read the folders and test every ensemble against the best single model, and every run against the baseline of
    its dataset. shared: of runs that answered different questions, pair the shared ones.

    Raises OutputError for a folder that holds no run, two runs of the same settings, and runs that cannot be paired
    because their questions, prompts or golds differ.
    """
    paths = {Path(folder).resolve(): Path(folder) for folder in [*folders, *baselines]}
    runs = [read_run(path) for path in paths.values()]
    for run in runs:
        if not run.predictions:
            raise OutputError(f"{run.folder} has only questions with repaired golds: it has no accuracy to compare")
    named = dict(zip(paths, _name(runs), strict=True))
    bases = {run.run.dataset: run for run in (named[Path(folder).resolve()] for folder in baselines)}
    named = list(named.values())
    tests, notes = [], []
    for run in (run for run in named if not run.run.is_single):
        best, note = _best_single(run, named, shared)
        tests += [best] if best else []
        notes += [note] if note else []
    for run in named:
        base = bases.get(run.run.dataset)
        done = any(test.run is run and test.against is base for test in tests)
        if base and run is not base and not done:
            tests.append(Test(run, base, False, _pair(base.run, run.run, shared), 1.0))
    corrected = holm([test.result.p for test in tests])
    tests = [replace(test, p_holm=p) for test, p in zip(tests, corrected, strict=True)]
    return Comparison(tuple(named), tuple(tests), tuple(notes + _confounds(tests)))


def _name(runs: Sequence[Run]) -> list[Named]:
    short = short_names(runs)
    named = [
        Named(run, tuple(short[model] for model in run.models), label)
        for run, label in zip(runs, labels(runs), strict=True)
    ]
    seen: dict[tuple, Named] = {}
    for one in named:
        other = seen.setdefault((one.models, one.method, one.run.dataset), one)
        if other is not one:
            raise OutputError(
                f"{other.run.folder} and {one.run.folder} are two runs of the same settings on {one.run.dataset}; "
                "name only one of them"
            )
    return named


def _best_single(run: Named, named: Sequence[Named], shared: bool) -> tuple[Test | None, str | None]:
    """The test against the best single model (of equals, the drafter), and what is missing for it."""
    models, dataset = run.run.models, run.run.dataset
    singles = [
        one for one in named
        if one.run.is_single and one.run.dataset == dataset and one.run.models[0] in models
    ]  # fmt: skip
    singles.sort(key=lambda one: models.index(one.run.models[0]))
    given = {one.run.models[0] for one in singles}
    missing = [short for short, model in zip(run.models, models, strict=True) if model not in given]
    note = f"{run.title} on {dataset}: no run of {', '.join(missing)} alone was given" if missing else None
    tests = [Test(run, one, True, _pair(one.run, run.run, shared), 1.0) for one in singles]
    # all pair the same questions, unless --shared: the best single is the one that leaves the smallest gap
    return min(tests, key=lambda test: test.result.difference, default=None), note


def _pair(a: Run, b: Run, shared: bool) -> Paired:
    """b against a. Raises OutputError where they were not asked the same."""
    ids = [name for name in a.predictions if name in b.predictions]
    if not shared:
        for one, other in ((a, b), (b, a)):
            if lacking := [name for name in other.predictions if name not in one.predictions]:
                raise _refusal(
                    a, b, f"{one.folder} lacks", lacking,
                    "; finish it by running its command again, or pair the shared questions with --shared",
                )  # fmt: skip
    if not ids:
        raise OutputError(f"{a.folder} and {b.folder} cannot be paired: they share no question")
    for what, key in (("prompts", "prompt_sha256"), ("golds", "gold")):
        differing = [name for name in ids if a.predictions[name][key] != b.predictions[name][key]]
        if differing:
            raise _refusal(a, b, f"their {what} differ in", differing)
    return paired(*([run.predictions[name]["correct"] for name in ids] for run in (a, b)))


def _refusal(a: Run, b: Run, what: str, ids: Sequence[str], advice: str = "") -> OutputError:
    listed = ", ".join(ids[:SHOWN_IDS]) + (", ..." if len(ids) > SHOWN_IDS else "")
    return OutputError(f"{a.folder} and {b.folder} cannot be paired: {what} {len(ids)} question(s): {listed}{advice}")


def _confounds(tests: Sequence[Test]) -> list[str]:
    """Settings besides the method in which paired runs differ."""
    notes = []
    for test in tests:
        configs = [test.run.run.config, test.against.run.config]
        differing = [key for key in CONFOUNDS if _told(configs[0].get(key)) != _told(configs[1].get(key))]
        if differing:
            told = ", ".join(f"{key} ({' and '.join(_told(c.get(key)) for c in configs)})" for key in differing)
            notes.append(f"{test.run.title} and {test.against.title} on {test.run.run.dataset} also differ in {told}")
    return notes


def _told(value: object) -> str:
    """A setting in words; one for each model counts as one where all are the same."""
    return ", ".join(dict.fromkeys(map(str, value))) if isinstance(value, list) else str(value)
