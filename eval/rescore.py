"""Score stored answers again, without a model: `python -m eval.rescore OUT...`

For when the scoring has improved. The predictions of a folder are replaced at once, or not at all.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from eval.records import OutputError, OutputFolder
from eval.report import summarize
from eval.run import scored


@dataclass(frozen=True)
class Rescored:
    """What scoring again changed. became_right, became_wrong: ids. reread: questions whose prediction is another."""

    became_right: tuple[str, ...]
    became_wrong: tuple[str, ...]
    reread: int
    summary: dict


def rescore(path: Path | str) -> Rescored:
    """Score the answers of an output folder again and rewrite predictions.jsonl and summary.json.

    Raises OutputError if the folder holds no run, or one that is still going on."""
    if not (Path(path) / "config.json").is_file():
        raise OutputError(f"{path} holds no run: it has no config.json")
    with closing(OutputFolder.claim(path)) as folder:
        config = folder.config()
        folder.merge()
        old = folder.lines()
        new = [scored(config["data_name"], line) for line in old]
        folder.replace_lines(new)
        summary = summarize(new, config.get("skipped", ()))
        folder.write_summary(summary)
    turned = [b for a, b in zip(old, new, strict=True) if a["correct"] != b["correct"]]
    return Rescored(
        became_right=tuple(line["id"] for line in turned if line["correct"]),
        became_wrong=tuple(line["id"] for line in turned if not line["correct"]),
        reread=sum(a["prediction"] != b["prediction"] for a, b in zip(old, new, strict=True)),
        summary=summary,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Rescore folders; returns the exit status: 2, and one line a folder on stderr, where one could not be."""
    parser = argparse.ArgumentParser(prog="python -m eval.rescore", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="OUT", help="an output folder")
    status = 0
    for folder in parser.parse_args(argv).folders:
        try:
            print(_described(folder, rescore(folder)))
        except OutputError as error:
            print(f"error: {error}", file=sys.stderr)
            status = 2
    return status


def _described(folder: Path, result: Rescored) -> str:
    summary = result.summary
    accuracy = "-" if summary["accuracy"] is None else f"{100 * summary['accuracy']:.1f}%"
    lines = [f"{folder}: accuracy {accuracy} of {summary['questions']} questions, {result.reread} predictions changed"]
    for what, ids in (("right", result.became_right), ("wrong", result.became_wrong)):
        if ids:
            lines.append(f"  now {what}: {', '.join(ids[:20])}{' ...' if len(ids) > 20 else ''}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
