"""The flags that both scripts and the benchmarks share (SPEC 10). Their defaults are those of the settings.

What loads torch is imported where it is needed: --help and a misspelt flag answer at once.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NoReturn

from cli.ranks import Ranks
from safe.config import ConfigError, SafeConfig

if TYPE_CHECKING:
    from safe.loading import LoadOptions

DEFAULTS = SafeConfig()
AUTO_BATCH = 32  # answers; halved as often as they do not fit


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line on stderr and exit status 2."""

    def error(self, message: str) -> NoReturn:
        sys.exit(fail(f"{message} (see --help)"))


def fail(message: object) -> int:
    """Say on stderr, in one line, what is wrong; returns the exit status of wrong input, 2. Of the processes of one
    launch one a machine speaks."""
    if Ranks.from_environment().local == 0:
        print(f"error: {' '.join(str(message).split())}", file=sys.stderr)
    return 2


def true_or_false(text: str) -> bool:
    """The paper's flags are spelt True and False."""
    if text not in ("True", "False"):
        raise argparse.ArgumentTypeError(f"must be True or False, got {text!r}")
    return text == "True"


def number_or_auto(text: str) -> int | str:
    """A whole number, or auto."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number or auto, got {text!r}") from None


def numbers(text: str) -> tuple[float, ...]:
    """Comma-separated numbers."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers separated by commas, got {text!r}") from None


def names(text: str) -> tuple[str, ...]:
    """Comma-separated names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def script_parser(datasets: Sequence[str], description: str) -> argparse.ArgumentParser:
    """All flags that run_safe.py and run_safe_mmlu.py have in common."""
    parser = OneLineParser(
        description=description, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_flags(parser)
    add_data_flags(parser, datasets)
    add_method_flags(parser)
    add_run_flags(parser)
    return parser


def _switch(group, flag: str, **kwargs) -> None:
    """A flag that is off by default: --flag, or --flag True|False like the paper's."""
    group.add_argument(flag, type=true_or_false, nargs="?", const=True, default=False, metavar="True|False", **kwargs)


def add_model_flags(parser: argparse.ArgumentParser) -> None:
    """Which models, and how they are loaded."""
    group = parser.add_argument_group("models: a Hub name, a folder or a .gguf file each")
    group.add_argument("--model_path1", help="the drafter")
    group.add_argument("--model_path2", help="the first verifier")
    group.add_argument("--model_path3", help="the second verifier")
    group.add_argument("--dtype", help="float32, bfloat16 or float16 (default: bfloat16 on CUDA, else float32)")
    group.add_argument("--device", type=names, default=(), help="cpu, cuda, auto, or one per model: cuda:0,cuda:1")
    group.add_argument("--attn_implementation", help="default: flash_attention_2 if installed and CUDA, else sdpa")
    group.add_argument("--quantization", choices=("8bit", "4bit"), help="load with bitsandbytes")
    _switch(group, "--trust_remote_code", help="run code that comes with a model")
    _switch(group, "--allow_pickle_weights", help="also load weights that are no safetensors")


def add_method_flags(parser: argparse.ArgumentParser) -> None:
    """How the models decode."""
    group = parser.add_argument_group("method")
    group.add_argument("--ensemble", type=true_or_false, default=DEFAULTS.ensemble, help="False: the drafter alone")
    group.add_argument("--ensemble_type", choices=("unite", "gac"), default=DEFAULTS.ensemble_type)
    group.add_argument("--sharpen_type", choices=("heur", "geom", "none"), default=DEFAULTS.sharpen_type)
    group.add_argument("--schedule", choices=("safe", "every"), default=DEFAULTS.schedule, help="every: the baseline")
    group.add_argument("--gamma", type=number_or_auto, default=DEFAULTS.gamma, help="lookahead in tokens, or auto")
    group.add_argument("--max_new_tokens", type=int, default=DEFAULTS.max_new_tokens)
    group.add_argument("--top_k", type=int, default=DEFAULTS.top_k, help="UniTE: candidates of each model")
    group.add_argument("--sharpen_lambda", type=float, default=DEFAULTS.sharpen_lambda)
    group.add_argument("--gac_gate", type=float, default=DEFAULTS.gac_gate)
    group.add_argument("--weights", type=numbers, help="one per model, comma-separated (default: equal)")
    group.add_argument("--batch_size", type=number_or_auto, help="answers in flight, or auto: as many as fit on CUDA")


def add_data_flags(parser: argparse.ArgumentParser, datasets: Sequence[str]) -> None:
    """Which questions."""
    group = parser.add_argument_group("questions")
    group.add_argument("--data_name", choices=datasets, help="the benchmark")
    group.add_argument("--data_path", help="local rows with the Hub's columns: .jsonl, .json, .parquet or a folder")
    group.add_argument("--limit", type=int, help="only the first so many questions (of each subject)")


def add_subject_flags(parser: argparse.ArgumentParser) -> None:
    """Which subjects, of the benchmarks that have them."""
    group = parser.add_argument_group("subjects")
    group.add_argument("--subjects", type=names, help="comma-separated, or all (default: the paper's)")
    group.add_argument("--cot_prompts", help="bbh: a folder of <task>.txt worked examples in place of ours")


def add_run_flags(parser: argparse.ArgumentParser) -> None:
    """Where the results go."""
    group = parser.add_argument_group("output")
    group.add_argument("--output_path", help="a folder, made if missing; the same command again continues in it")
    _switch(group, "--overwrite", help="begin anew in a folder that holds results")
    _switch(group, "--trace", help="keep every token's verdict and candidates, and write report.html")
    group.add_argument("--report_to", choices=("tensorboard", "wandb"), help="also log to an experiment tracker")


@dataclass(frozen=True)
class Models:
    """The models of a run and how each is loaded."""

    paths: tuple[str, ...]
    options: "tuple[LoadOptions, ...]"


def models_of(args: argparse.Namespace) -> Models:
    """The models that the flags name. Raises ConfigError if a later one is given without the ones before it."""
    given = (args.model_path1, args.model_path2, args.model_path3)
    paths = tuple(path for path in given if path is not None)
    if given[: len(paths)] != paths:
        missing = next(i for i, path in enumerate(given, 1) if path is None)
        raise ConfigError(f"--model_path{missing} is missing: models are given in order, the drafter first")
    devices = args.device or (None,)
    if len(devices) == 1:
        devices *= len(paths)
    if len(devices) != len(paths):
        raise ConfigError(f"--device names {len(devices)} devices for {len(paths)} models; give one, or one for each")
    return Models(paths, tuple(_options(args, device).resolved() for device in devices))


def _options(args: argparse.Namespace, device: str | None) -> "LoadOptions":
    from safe.loading import LoadOptions

    return LoadOptions(
        dtype=args.dtype,
        device=device,
        attn_implementation=args.attn_implementation,
        trust_remote_code=args.trust_remote_code,
        quantization=args.quantization,
        allow_pickle=args.allow_pickle_weights,
    )


def config_of(args: argparse.Namespace, n_models: int) -> SafeConfig:
    """The settings that the flags give. Raises ConfigError for a wrong one."""
    given = {field.name: getattr(args, field.name, None) for field in fields(SafeConfig)}
    given = {name: value for name, value in given.items() if value is not None}  # the others have their defaults
    if given.get("batch_size") == "auto":
        given["batch_size"] = AUTO_BATCH
    config = SafeConfig(**given)
    config.weights_for(n_models if config.ensemble else 1)
    return config
