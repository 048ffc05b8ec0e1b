"""How alike some tokenizers cut words (the paper's Figure 4): `python -m safe.tokenizers A B ... --words FILE`.

A and B are models as run_safe.py takes them; only their tokenizers are loaded. The words are those of the file: of a
text, or of every string in a .json or .jsonl file. The tables (Markdown, or CSV of the pairs) go to standard output.
"""

import argparse
import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

from ensemble.tokens import EOS, TokenizerError
from safe.lm import ModelError
from safe.loading import LoadOptions, load_reader
from safe.reader import Reader

Cuts = Mapping[bytes, frozenset[int]]
"""Word -> the byte offsets inside it where a token starts."""


@dataclass(frozen=True)
class Pair:
    """Two tokenizers side by side.

    cut_alike: share of the distinct words that both cut at the same places. first_in_second: share of the first's
    token starts where a token of the second starts too, over all occurrences: the rest of a drafter's tokens are
    OOV-like to a verifier. second_in_first: the other way round. shared_symbols: byte strings that both vocabularies
    have; first_symbols, second_symbols: how many each has.
    """

    first: str
    second: str
    cut_alike: float
    first_in_second: float
    second_in_first: float
    shared_symbols: int
    first_symbols: int
    second_symbols: int


def read_words(path: Path) -> Counter[bytes]:
    """The words of a file with how often each occurs, as they stand in a text: with the space before them.

    Raises ValueError for a file without words or that is not what its name says."""
    try:
        content = path.read_text(encoding="utf-8")
        texts = [content]
        if path.suffix == ".jsonl":
            texts = [text for line in content.split("\n") if line.strip() for text in _strings(json.loads(line))]
        elif path.suffix == ".json":
            texts = list(_strings(json.loads(content)))
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}; give a text, .json or .jsonl file") from None
    except ValueError as error:  # of the decoding or of JSON
        raise ValueError(f"{path} cannot be read as {path.suffix or 'text'}: {error}") from None
    words = Counter(f" {word}".encode() for text in texts for word in text.split())
    if not words:
        raise ValueError(f"{path} holds no words; give a text, .json or .jsonl file with some")
    return words


def _strings(value: object) -> Iterator[str]:
    """Every string in a JSON value; the keys of objects are none of the text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def cuts_of(reader: Reader, words: Counter[bytes]) -> Cuts:
    """Where a tokenizer cuts each word."""
    return {word: frozenset(reader.read(word).starts) - {0} for word in words}


def compare(names: tuple[str, str], readers: tuple[Reader, Reader], cuts: tuple[Cuts, Cuts], words: Counter) -> Pair:
    """The figures of two tokenizers over words with their counts."""
    first, second = cuts
    shared = sum(n * (1 + len(first[word] & second[word])) for word, n in words.items())  # 1: the word's own start
    starts = [sum(n * (1 + len(own[word])) for word, n in words.items()) for own in cuts]
    symbols = [reader.vocabulary.ids_of.keys() - {EOS} for reader in readers]
    return Pair(
        *names,
        cut_alike=sum(first[word] == second[word] for word in words) / len(words),
        first_in_second=shared / starts[0],
        second_in_first=shared / starts[1],
        shared_symbols=len(symbols[0] & symbols[1]),
        first_symbols=len(symbols[0]),
        second_symbols=len(symbols[1]),
    )


def report(readers: Mapping[str, Reader], cuts: Mapping[str, Cuts], pairs: Sequence[Pair], words: Counter) -> str:
    """The tables in Markdown: one row a tokenizer, one row a pair, one line for all of them."""
    total = words.total()
    lines = [f"{len(words)} distinct words, {total} in all.", ""]
    lines += _table_head("tokenizer", "vocabulary (byte strings)", "tokens a word", "words in one piece")
    for name, reader in readers.items():
        tokens = sum(n * (1 + len(cuts[name][word])) for word, n in words.items()) / total
        whole = sum(not cuts[name][word] for word in words) / len(words)
        lines.append(f"| {name} | {len(reader.vocabulary.ids_of.keys() - {EOS})} | {tokens:.2f} | {whole:.1%} |")
    lines += ["", *_table_head("A", "B", "words cut alike", "A's starts in B", "B's starts in A", "A's vocabulary in B",
                               "B's vocabulary in A")]  # fmt: skip
    for pair in pairs:
        shares = (pair.cut_alike, pair.first_in_second, pair.second_in_first)
        vocabulary = (pair.shared_symbols / pair.first_symbols, pair.shared_symbols / pair.second_symbols)
        lines.append(
            f"| {pair.first} | {pair.second} | " + " | ".join(f"{x:.1%}" for x in (*shares, *vocabulary)) + " |"
        )
    alike = sum(len({own[word] for own in cuts.values()}) == 1 for word in words) / len(words)
    return "\n".join([*lines, "", f"All {len(readers)} cut {alike:.1%} of the words alike."])


def _table_head(*columns: str) -> list[str]:
    return ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]


def short_names(paths: Sequence[str]) -> list[str]:
    """The last part of each path, or the whole where that is not unique."""
    last = [Path(path).name for path in paths]
    return [name if last.count(name) == 1 else path for name, path in zip(last, paths, strict=True)]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m safe.tokenizers", description=__doc__)
    parser.add_argument("models", nargs="+", help="two or more: Hub names, folders or .gguf files")
    parser.add_argument("--words", type=Path, required=True, help="a text, .json or .jsonl file")
    parser.add_argument("--csv", action="store_true", help="the pairs as CSV instead of Markdown tables")
    parser.add_argument("--trust_remote_code", action="store_true", help="run code that comes with a tokenizer")
    args = parser.parse_args(argv)
    if len(set(args.models)) < max(2, len(args.models)):
        parser.error("give two or more models, each once")
    options = LoadOptions(device="cpu", trust_remote_code=args.trust_remote_code)
    try:
        words = read_words(args.words)
        loaded = [load_reader(path, options) for path in args.models]
    except (ModelError, TokenizerError, ValueError) as error:
        print(f"safe.tokenizers: {error}", file=sys.stderr)
        return 2
    readers = dict(zip(short_names(args.models), loaded, strict=True))
    cuts = {name: cuts_of(reader, words) for name, reader in readers.items()}
    pairs = [compare((a, b), (readers[a], readers[b]), (cuts[a], cuts[b]), words) for a, b in combinations(readers, 2)]
    if args.csv:
        table = csv.DictWriter(sys.stdout, list(asdict(pairs[0])), lineterminator="\n")
        table.writeheader()
        table.writerows(map(asdict, pairs))
    else:
        print(report(readers, cuts, pairs, words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
