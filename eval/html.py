"""A run as one page to read: `python -m eval.html OUT` writes OUT/report.html, which needs no network and no server.

Every answer with its tokens coloured by verdict, and what each model would have written where they were ensembled.
Model text is data everywhere: escaped by the template, or packed and put into the page as text by its script. What is
packed is unpacked when its question is opened, so that a page of a thousand answers opens at once.
"""

import argparse
import base64
import codecs
import hashlib
import json
import os
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from eval.records import OutputError
from eval.report import summarize
from eval.runs import PARTS, Run, read_run, short_names

SHOWN = 6  # candidates of a distribution

# letter in the page's data -> (name, what it means); changed tokens are ensembled ones, counted on their own
VERDICTS = {
    "u": ("unanimous", "every verifier would have written it too: accepted as drafted"),
    "c": ("confident", "the models disagree, but give it more than half on average: accepted as drafted"),
    "g": ("gated", "the drafter was sure of it (GaC): accepted as drafted"),
    "o": ("oov", "some verifier's tokens do not start here, so it cannot judge (OOV-like): accepted as drafted"),
    "e": ("kept", "ensembled, and the ensemble chose what was drafted"),
    "x": ("changed", "ensembled, and the ensemble chose something else"),
    "-": ("alone", "written by one model alone"),
}


def write_report(folder: Path | str) -> Path:
    """Write report.html of an output folder and return its path. Raises OutputError if the folder holds no run."""
    run = read_run(folder)
    lines = run.predictions | run.repaired
    summary, models = summarize(list(lines.values())), _model_names(run)
    details = {line["id"]: _pack(_traced(line)) for line in run.trace() if line["id"] in lines}
    details = {name: details.get(name) or _pack(_untraced(line)) for name, line in lines.items()}
    page = _template().render(
        title=_title(run), config=run.config, models=models, figures=_figures(summary, models),
        subjects=summary.get("subjects", {}), counts=_counts(summary), verdicts=VERDICTS, details=details,
        lines=[_row(line) for line in lines.values()], has_trace=(run.folder / "trace.jsonl").exists(),
    )  # fmt: skip
    path = run.folder / "report.html"
    half_written = path.with_suffix(".html.part")
    half_written.write_text(page, encoding="utf-8", errors="replace")  # a lone surrogate in a dataset's row
    os.replace(half_written, path)
    return path


def _template():
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["csp_hash"] = lambda text: base64.b64encode(
        hashlib.sha256(str(text).encode()).digest()
    ).decode()
    environment.filters |= {"percent": _percent, "interval": _interval}
    return environment.get_template("report.html.j2")


def _model_names(run: Run) -> list[str]:
    short = short_names([run])
    return [short[name] for name in run.models]


def _title(run: Run) -> str:
    models = " + ".join(_model_names(run))
    return f"{models} on {run.dataset}" if run.is_single else f"{run.method}: {models} on {run.dataset}"


def _figures(summary: dict, models: Sequence[str]) -> dict[str, str]:
    """Name -> figure, of the whole run."""
    figures = {
        "accuracy": _percent(summary["accuracy"]),
        "its 95% interval": _interval(summary["accuracy_interval"]),
        "questions": f"{summary['questions']:,}",
    }
    if "accuracy_repaired" in summary:
        figures["accuracy with repaired golds"] = _percent(summary["accuracy_repaired"])
    figures |= {
        "no answer found": f"{summary['unanswered']:,}",
        "cut off": f"{summary['cut_off']:,}",
        "tokens": f"{summary['tokens']:,}",
        "ensembled (E/T)": _percent(summary["ensemble_rate"]),
        "tokens per second": f"{summary['tokens_per_second'] or 0.0:.1f}",
        "tokens drafted": f"{summary['drafted']:,}",
    }
    passes = zip(models, summary["forward_passes"], strict=True)
    figures |= {f"forward passes, {name}": f"{count:,}" for name, count in passes}
    figures |= {f"time, {part}": f"{summary['seconds'][part]:.1f} s" for part in PARTS}
    return figures | {"peak memory": f"{(summary['peak_memory_bytes'] or 0) / 2**20:,.0f} MiB"}


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}%"


def _interval(bounds: Sequence[float] | None) -> str:
    return "–" if bounds is None else f"{100 * bounds[0]:.1f} to {100 * bounds[1]:.1f}%"


def _counts(summary: dict) -> dict[str, int]:
    """Letter of a verdict -> tokens that have it."""
    verdicts = summary["verdicts"]
    counts = {letter: verdicts.get(name, 0) for letter, (name, _) in VERDICTS.items()}
    counts["e"] = verdicts["ensembled"] - verdicts["changed"]
    return counts | {"-": summary["tokens"] - sum(counts.values())}


def _row(line: dict) -> dict:
    """What the list of questions shows of one, and filters it by."""
    changed = line["verdicts"]["changed"]
    marks = {"wrong": not line["correct"], "changed": changed, "unanswered": line["prediction"] is None}
    shown = ("id", "prediction", "gold", "correct", "tokens", "finish_reason")
    found = {key: line[key] for key in shown} | {"changed": changed, "repaired": line.get("repaired", False)}
    return found | {"marks": " ".join(name for name, holds in marks.items() if holds)}


def _traced(line: dict) -> dict:
    """A line of trace.jsonl as the page wants it: texts and verdict letters, a token each; bytes (hex) of tokens that
    are no text of their own; votes by token number, as [drafted, [[probability of the draft, candidates] a model],
    ensemble, sharpened or null]."""
    tokens = line["tokens"]
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
    texts = [decode(bytes.fromhex(token["bytes"]), final=token is tokens[-1]) for token in tokens]
    partial = {number: token["bytes"] for number, token in enumerate(tokens) if _is_partial(token["bytes"])}
    votes = {number: _vote(token) for number, token in enumerate(tokens) if "models" in token}
    return {"prompt": line["prompt"], "texts": texts, "verdicts": "".join(map(_letter, tokens)), "bytes": partial,
            "votes": votes}  # fmt: skip


def _untraced(line: dict) -> dict:
    """An answer without a trace: one piece of text."""
    return {"prompt": None, "texts": [line["response"]], "verdicts": " ", "bytes": {}, "votes": {}}


def _letter(token: dict) -> str:
    if token["verdict"] is None:
        return "-"
    if token["verdict"] == "ensembled":
        return "x" if token["changed"] else "e"
    return token["verdict"][0]


def _is_partial(hexed: str) -> bool:
    """Whether bytes are no UTF-8 of their own: part of a character, or broken."""
    try:
        bytes.fromhex(hexed).decode()
    except UnicodeDecodeError:
        return True
    return False


def _vote(token: dict) -> list:
    models = [[_round(model["probability"]), _top(model["candidates"])] for model in token["models"]]
    sharpened = None if token["sharpened"] is None else _top(token["sharpened"])
    return [token["drafted"], models, _top(token["ensemble"]), sharpened]


def _top(candidates: Sequence) -> list:
    return [[text, _round(probability)] for text, probability in candidates[:SHOWN]]


def _round(probability: float) -> float:
    return round(probability, 4)


def _pack(detail: dict) -> str:
    """JSON, deflated, in letters that mean nothing to HTML."""
    return base64.b64encode(zlib.compress(json.dumps(detail, separators=(",", ":")).encode())).decode()


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages; 2 and one line on stderr if a folder holds no run."""
    parser = argparse.ArgumentParser(prog="python -m eval.html", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="OUT", help="output folders")
    args = parser.parse_args(argv)
    try:
        for folder in args.folders:
            print(write_report(folder))
    except (OutputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
