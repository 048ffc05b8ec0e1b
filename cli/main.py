"""One run from its flags to its folder: what both scripts share."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

import torch

from cli.flags import (
    OneLineParser,
    add_data_flags,
    add_method_flags,
    add_model_flags,
    add_run_flags,
    config_of,
    fail,
    models_of,
)
from cli.memory import peak_memory
from cli.table import closing_table
from cli.tracker import check_tracker, tracker
from data.example import DataError, Example, Loaded
from data.load import load
from data.prompts import load_shots, user_message
from ensemble.tokens import TokenizerError
from eval.html import write_report
from eval.records import OutputError, OutputFolder
from eval.report import summarize
from eval.run import Stopped, evaluate
from safe.config import ConfigError, SafeConfig
from safe.fit import generate_that_fits
from safe.lm import LM, ModelError
from safe.loading import load_models

WRONG_INPUT = (ConfigError, DataError, ModelError, OutputError, TokenizerError)
LIBRARIES = ("torch", "transformers", "tokenizers", "accelerate", "datasets", "math-verify")
ROOT = Path(__file__).resolve().parent.parent
TOY_MODELS = tuple(str(ROOT / "demo" / "models" / name) for name in ("a", "b"))


@dataclass(frozen=True)
class Process:
    """This process among those of one `accelerate launch`."""

    rank: int
    world: int
    wait: Callable[[], None]

    @classmethod
    def this(cls) -> "Process":
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls(0, 1, lambda: None)
        from accelerate import PartialState

        # ranks end at different times, hours apart in a long run
        state = PartialState(cpu=not torch.cuda.is_available(), timeout=timedelta(days=30))
        return cls(state.process_index, state.num_processes, state.wait_for_everyone)


def parser(datasets: Sequence[str], description: str) -> argparse.ArgumentParser:
    """The flags of a script."""
    made = OneLineParser(description=description)
    add_model_flags(made)
    add_data_flags(made, datasets)
    add_method_flags(made)
    add_run_flags(made)
    return made


def main(args: argparse.Namespace) -> int:
    """Run a script; returns its exit status. Wrong input is one line on stderr and 2, a signal 128 + its number."""
    try:
        return _run(args)
    except WRONG_INPUT as error:
        return fail(error)
    except Stopped as stop:
        print(f"{stop}; every finished line is kept, run the same command again to continue", file=sys.stderr)
        return 128 + stop.number


def _run(args: argparse.Namespace) -> int:
    if args.model_path1 is None and args.model_path2 is None:
        _use_toys(args)
    missing = [f"--{name}" for name in ("data_name", "output_path") if getattr(args, name) is None]
    if missing:
        raise ConfigError(f"{' and '.join(missing)} must be given")
    check_tracker(args.report_to)
    named = models_of(args)
    config = config_of(args, len(named.paths))
    loaded, prompts = _questions(args)
    process = Process.this()
    folder = OutputFolder.claim(args.output_path, process.rank, process.world)
    settings = _settings(args, config, named, loaded)
    if process.rank == 0 and not args.overwrite:
        folder.check(settings)
    if args.overwrite or _todo(loaded.examples, prompts, folder.answered(), process):
        lms = _load(args, config, named)
    else:  # nothing is left for this process: no need for weights
        lms = []
    if process.rank == 0:
        folder.prepare(settings | {"revisions": [lm.revision for lm in lms]}, overwrite=args.overwrite)
    process.wait()
    todo = _todo(loaded.examples, prompts, folder.answered(), process)
    process.wait()  # nobody writes before everybody has read
    _decode(args, config, lms, todo, folder, process)
    process.wait()
    if process.rank == 0:
        _finish(args, folder, loaded)
    return 0


def _decode(args, config: SafeConfig, lms: list[LM], todo: list, folder: OutputFolder, process: Process) -> None:
    """Answer this process's share of the questions, a line each."""
    if not todo:
        return
    with tracker(args.report_to if process.rank == 0 else None, folder.path, vars(args)) as log:
        evaluate(
            args.data_name,
            todo,
            lambda asked: generate_that_fits(lms, list(asked), config),
            folder,
            peak_memory=lambda: peak_memory(lms),
            log=log,
            show=process.rank == 0,
        )


def _use_toys(args: argparse.Namespace) -> None:
    """Without a model: the trained toy pair that ships with the project, on its own questions."""
    args.model_path1, args.model_path2 = TOY_MODELS
    args.data_name = args.data_name or "toy"
    args.output_path = args.output_path or "out/toy"
    print(f"no model named: running the toy pair of demo/ on {args.data_name}, results in {args.output_path}")


def _questions(args: argparse.Namespace) -> tuple[Loaded, list[str]]:
    """The questions and their prompts."""
    subjects = getattr(args, "subjects", None)
    loaded = load(args.data_name, args.data_path, subjects=subjects, limit=args.limit)
    shots: dict[str, str] = {}
    if args.data_name == "bbh":
        tasks = list(dict.fromkeys(example.subject for example in loaded.examples))
        shots = load_shots(tasks, args.cot_prompts)
    return loaded, [user_message(args.data_name, e, shots.get(e.subject)) for e in loaded.examples]


def _settings(args: argparse.Namespace, config: SafeConfig, named, loaded: Loaded) -> dict:
    """config.json: every setting as resolved."""
    options = [asdict(option) for option in named.options]
    same = {key: options[0][key] for key in options[0] if key != "device"}
    settings = {"data_name": args.data_name, "data_source": loaded.source, "data_hashes": loaded.sha256}
    settings |= {"limit": args.limit, "subjects": getattr(args, "subjects", None)}
    settings |= {"cot_prompts": getattr(args, "cot_prompts", None)}
    settings |= {"models": [path.rstrip("/") for path in named.paths]}
    settings |= same | {"device": [option["device"] for option in options]} | asdict(config)
    settings["versions"] = {library: version(library) for library in LIBRARIES} | {"python": sys.version.split()[0]}
    return settings


def _load(args: argparse.Namespace, config: SafeConfig, named) -> list[LM]:
    count = len(named.paths) if config.ensemble else 1
    for path in named.paths[:count] if args.trust_remote_code else ():
        print(f"trusting the code that comes with {path}", file=sys.stderr)
    return load_models(named.paths[:count], named.options[:count], rows=config.batch_size)


def _todo(examples: Sequence[Example], prompts: Sequence[str], done: set[str], process: Process):
    """This process's share of the questions without a line."""
    left = [pair for pair in zip(examples, prompts, strict=True) if pair[0].id not in done]
    return left[process.rank :: process.world]


def _finish(args: argparse.Namespace, folder: OutputFolder, loaded: Loaded) -> None:
    """Merge, summarize, and say how it went."""
    folder.merge([example.id for example in loaded.examples])
    summary = summarize(folder.lines(), [skipped.reason for skipped in loaded.skipped])
    folder.write_summary(summary)
    print(closing_table(summary, folder.path))
    if args.trace:
        print(f"page: {write_report(folder.path)}")
