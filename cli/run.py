"""One run from its flags to its folder: the place where decoding (safe) and scoring (eval) meet."""

import argparse
import os
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

from cli.engine import Engine
from cli.flags import Models, config_of, models_of
from cli.ranks import RankError, Ranks
from cli.settings import differences, other_versions, question_differences, resolved, revisions
from cli.signals import StopSignals
from cli.table import closing_table
from cli.tracker import check_tracker, tracker
from data.example import DataError, Example, Loaded
from data.load import load
from data.prompts import load_shots, user_message
from ensemble.tokens import TokenizerError
from eval.html import write_report
from eval.records import OutputError, OutputFolder
from eval.report import Tally, summarize
from eval.run import evaluate, progress, prompt_hash
from safe.config import ConfigError, SafeConfig
from safe.lm import ModelError

USER_ERRORS = (ConfigError, DataError, ModelError, OutputError, RankError, TokenizerError)
ROOT = Path(__file__).resolve().parent.parent
TOY_BATCH = 32  # a pass of models this small costs the same for many answers as for one
TOY_MODELS = tuple(str(ROOT / "demo" / "models" / name) for name in ("a", "b"))


@dataclass(frozen=True)
class Plan:
    """Everything that is known before a model is loaded. asked: every question with its prompt."""

    args: argparse.Namespace
    models: Models
    config: SafeConfig
    asked: list[tuple[Example, str]]
    settings: dict

    @property
    def order(self) -> list[str]:
        """The ids of all questions."""
        return [example.id for example, _ in self.asked]


def run(args: argparse.Namespace, ranks: Ranks, signals: StopSignals, engine=None) -> int:
    """Do what the flags say; returns 0. Raises one of USER_ERRORS, and Stopped where signals are listened to."""
    plan = _plan(args, ranks)
    folder = OutputFolder(Path(args.output_path))
    folder.check_writable()
    check_tracker(args.report_to)
    ranks.connect()
    with closing(OutputFolder.claim(args.output_path, ranks.rank, ranks.world)) as folder:
        if ranks.is_main and not args.overwrite:
            _refuse_other_settings(folder, plan.settings)
            folder.merge(plan.order)
        ranks.wait()
        tally, left = _left(folder, plan)
        if left:
            _say(ranks, *_notes(folder, plan, len(left)))
            _answer(plan, folder, tally, left, ranks, signals, engine or Engine)
        ranks.wait()
        if ranks.is_main:
            _finish(plan, folder)
    ranks.disconnect()
    return 0


def _plan(args: argparse.Namespace, ranks: Ranks) -> Plan:
    if args.model_path1 is None and args.model_path2 is None and args.data_name in (None, "toy"):
        _use_toys(args, ranks)
    for name in ("model_path1", "data_name", "output_path"):
        if getattr(args, name) is None:
            raise ConfigError(f"--{name} must be given")
    models = models_of(args)
    config = config_of(args, len(models.paths))
    loaded = load(args.data_name, args.data_path, subjects=getattr(args, "subjects", None), limit=args.limit)
    asked = list(zip(loaded.examples, _prompts(args, loaded), strict=True))
    return Plan(args, models, config, asked, resolved(args, config, models, loaded, ranks.world))


def _use_toys(args: argparse.Namespace, ranks: Ranks) -> None:
    args.model_path1, args.model_path2 = TOY_MODELS
    args.data_name, args.output_path = "toy", args.output_path or "out/toy"
    args.batch_size = args.batch_size or TOY_BATCH
    _say(ranks, f"no model named: the toy pair of demo/ answers its own questions (toy), results in {args.output_path}")


def _prompts(args: argparse.Namespace, loaded: Loaded) -> list[str]:
    shots: dict[str, str] = {}
    if args.data_name == "bbh":
        shots = load_shots(dict.fromkeys(example.subject for example in loaded.examples), args.cot_prompts)
    elif getattr(args, "cot_prompts", None):
        raise ConfigError(f"--cot_prompts is for bbh; {args.data_name} is asked without worked examples")
    return [user_message(args.data_name, example, shots.get(example.subject)) for example in loaded.examples]


def _refuse_other_settings(folder: OutputFolder, settings: Mapping) -> None:
    old = folder.config()
    if old is not None and (found := differences(old, settings)):
        raise _other(folder, found)


def _other(folder: OutputFolder, found: Sequence[str]) -> OutputError:
    return OutputError(
        f"{folder.path} holds results of other settings: {', '.join(found)}; "
        "use those, another --output_path, or --overwrite to begin anew"
    )


def _left(folder: OutputFolder, plan: Plan) -> tuple[Tally, list[tuple[Example, str]]]:
    """What the folder holds, counted, and the questions without a line. Raises OutputError if answered questions are
    not asked any more, or in other words."""
    tally, asked = Tally(), {example.id: (example, prompt) for example, prompt in plan.asked}
    if plan.args.overwrite:
        return tally, plan.asked
    for line in folder.lines():
        example, prompt = asked.pop(line["id"], (None, None))
        if example is None or (example.gold, prompt_hash(prompt)) != (line["gold"], line["prompt_sha256"]):
            raise _other(folder, question_differences(folder.config() or {}, plan.settings))
        tally.add(line)
    return tally, list(asked.values())


def _notes(folder: OutputFolder, plan: Plan, left: int) -> list[str]:
    notes = []
    if "MASTER_ADDR" in os.environ and "RANK" not in os.environ:
        notes.append("accelerate launch has started one process; for several, on CPU too, add --multi_gpu")
    old = None if plan.args.overwrite else folder.config()
    if old is not None:
        notes.append(f"{folder.path}: {len(plan.asked) - left} of {len(plan.asked)} questions are answered, going on")
        if changed := other_versions(old, plan.settings):
            notes.append(f"{folder.path} was begun with other versions: {', '.join(changed)}")
    return notes


def _say(ranks: Ranks, *lines: str) -> None:
    for line in lines if ranks.is_main else ():
        print(line, flush=True)  # stderr is for the bar and for what is wrong


def _answer(plan: Plan, folder: OutputFolder, tally: Tally, left, ranks: Ranks, signals: StopSignals, engine) -> None:
    """Load the models and answer this process's share of the questions left."""
    models = engine(plan.models, plan.config, ranks)
    models.load()
    if ranks.is_main:
        settings = plan.settings | {"revisions": revisions(plan.models.paths)}  # those from the Hub are known now
        if not plan.args.overwrite:
            _refuse_other_settings(folder, settings)
        folder.prepare(settings, overwrite=plan.args.overwrite)
    ranks.wait()  # nobody writes before everybody has read what there is
    share = left[ranks.rank :: ranks.world]
    done = len(plan.asked) - len(left) if ranks.world == 1 else 0
    what = plan.args.data_name if ranks.world == 1 else f"{plan.args.data_name}, process 1 of {ranks.world}"
    log_to = plan.args.report_to if ranks.is_main else None
    with (
        progress(done, len(share), what) if ranks.is_main else nullcontext() as bar,
        tracker(log_to, folder.path, plan.settings) as log,
    ):
        evaluate(
            plan.args.data_name,
            share,
            models.answers,
            folder,
            tally,
            peak_memory=models.peak_memory,
            shield=signals.shield,
            log=log,
            bar=bar,
        )


def _finish(plan: Plan, folder: OutputFolder) -> None:
    """Merge, summarize, and say how it went."""
    folder.merge(plan.order)
    summary = summarize(folder.lines(), plan.settings["skipped"])
    folder.write_summary(summary)
    if plan.args.trace:
        write_report(folder.path)
    print(closing_table(summary, plan.settings, folder.path))
