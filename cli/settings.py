"""What config.json says about a run, and whether a command may go on in a folder that holds another's results."""

import hashlib
import platform
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

from cli.flags import Models
from data.example import Loaded
from safe.config import SafeConfig

LIBRARIES = ("torch", "transformers", "tokenizers", "accelerate", "datasets", "math-verify")

# Everything in config.json decides answers and must stay as it was, but for these.
FREE = {
    "batch_size",  # a question's answer does not depend on what else is in flight
    "processes",  # nor on who answers it
    "models",  # names of what the revisions identify: a folder may have moved
    "skipped",  # follows from the questions
    "data_hashes",  # the prompts and golds of answered questions are compared instead: a file may have grown
    "versions",  # a note is made: not worth refusing to go on
}
# These choose and word the questions: they may differ (say, a larger limit) as long as every question answered so far
# is asked again in the same words.
QUESTIONS = ("limit", "subjects", "data_source", "cot_prompts")

MODEL_FILES = {".json", ".jinja", ".txt", ".model", ".py", ".safetensors", ".bin", ".gguf"}
LARGE = 1 << 24  # bytes: of a larger file only its size, its beginning and its end are looked at


def resolved(args: Namespace, config: SafeConfig, models: Models, loaded: Loaded, processes: int) -> dict:
    """config.json: every setting as it is used, no default left open."""
    options = [asdict(option) for option in models.options]
    devices = [_kind(option.pop("device")) for option in options]
    return {
        "data_name": args.data_name,
        "data_source": loaded.source,
        "data_hashes": dict(loaded.sha256),
        "limit": args.limit,
        "subjects": list(args.subjects) if getattr(args, "subjects", None) else None,
        "cot_prompts": getattr(args, "cot_prompts", None),
        "models": [path.rstrip("/") for path in models.paths],
        "revisions": revisions(models.paths),
        **{key: list(value) if isinstance(value, tuple) else value for key, value in asdict(config).items()},
        **options[0],
        "device": devices[0] if len(set(devices)) == 1 else ",".join(devices),
        "processes": processes,
        "versions": {library: version(library) for library in LIBRARIES} | {"python": platform.python_version()},
        "skipped": [asdict(row) for row in loaded.skipped],
    }


def differences(old: Mapping, new: Mapping) -> list[str]:
    """The settings in which a run differs from the one in the folder, each in words; the questions aside."""
    found = [
        f"{key} {_shown(old.get(key))} (now {_shown(new[key])})"
        for key in new
        if key not in {*FREE, *QUESTIONS, "revisions"} and old.get(key) != new[key]
    ]
    if len(old.get("models", ())) != len(new["models"]):
        return [f"{len(old.get('models', ()))} models (now {len(new['models'])})", *found]
    pairs = zip(old["models"], new["models"], old["revisions"], new["revisions"], strict=True)
    for n, (was, name, its, revision) in enumerate(pairs, 1):
        if its != revision and None not in (its, revision):
            found.append(f"model_path{n} {was} (now {name})" if was != name else f"the files of model_path{n}, {name}")
        elif None in (its, revision) and was != name:
            found.append(f"model_path{n} {was} (now {name})")
    return found


def question_differences(old: Mapping, new: Mapping) -> list[str]:
    """The settings that make a run ask other questions than the one in the folder; what else could be, if none do."""
    found = [f"{key} {_shown(old.get(key))} (now {_shown(new[key])})" for key in QUESTIONS if old.get(key) != new[key]]
    return found or ["the rows of the data"]


def other_versions(old: Mapping, new: Mapping) -> list[str]:
    """The libraries whose version is another than when the folder was begun."""
    was = old.get("versions", {})
    return [f"{name} {was[name]} (now {now})" for name, now in new["versions"].items() if was.get(name, now) != now]


def revisions(paths: Iterable[str]) -> list[str | None]:
    """What identifies the files of each model: the commit of one from the Hub (None before its first download), a
    digest of local ones."""
    return [_revision(path) for path in paths]


def _revision(name: str) -> str | None:
    path = Path(name)
    if path.is_dir():
        return _digest(sorted(file for file in path.iterdir() if file.suffix in MODEL_FILES and file.is_file()))
    if path.is_file():
        return _digest([path])
    try:
        cached = try_to_load_from_cache(name, "config.json")
    except HFValidationError:  # no name of the Hub; loading it says so
        return None
    return Path(cached).parent.name if isinstance(cached, str) else None


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(min(size, LARGE)))
            if size > LARGE:
                file.seek(-LARGE, 2)
                digest.update(file.read())
    return f"sha256:{digest.hexdigest()}"


def _kind(device: str) -> str:
    """cuda of cuda:1: which of equal devices it was decides nothing."""
    return device.partition(":")[0]


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
