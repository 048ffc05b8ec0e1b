"""What one vote costs with vocabularies of real size: `python benchmarks/vote.py`

Three byte-level tokenizers of 150k, 128k and 262k entries are made of random words, most of which they share. Medians
over votes on distributions from flat to sharp, in turn, among candidates that come again and again as words do: one
that a vocabulary lacks is tokenized when it is first seen only. The log-sum-exp that the verdict before a vote has
needed already is not counted, GaC's softmax is.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a file, from anywhere

from ensemble.gac import VocabularyUnion  # noqa: E402
from ensemble.tokens import EOS, read_vocabulary  # noqa: E402
from safe.config import SafeConfig  # noqa: E402
from safe.lm import NextToken  # noqa: E402
from safe.peaks import block_maxima  # noqa: E402
from safe.reader import Reader  # noqa: E402
from safe.vote import Voter  # noqa: E402

SIZES = (150_000, 128_000, 262_000)
SHARED = 0.7  # of the words of a vocabulary, from one pool
CANDIDATES = 300  # symbols that any vote is about
WARM_UP = 50  # votes
END = "<end>"


class Voting:
    """What a vote asks of a model: its vocabulary, its reader and a place for indices."""

    device = torch.device("cpu")

    def __init__(self, reader: Reader):
        self.reader, self.vocabulary = reader, reader.vocabulary

    def index(self, ids) -> torch.Tensor:
        return torch.tensor(ids)

    def after(self, scale: float, candidates: list[bytes]) -> NextToken:
        """A distribution with its first candidates far above the others; scale: how far apart these are."""
        logits = torch.randn(len(self.vocabulary))
        known = [candidate for candidate in candidates if candidate in self.vocabulary]
        for place, candidate in enumerate(known[:12]):
            logits[self.vocabulary.ids_of[candidate][0]] += 20 - scale * place / 4
        maxima = block_maxima(logits[None])  # as a forward pass leaves them
        row = NextToken(self, logits, int(logits.argmax()), None if maxima is None else maxima[0])
        row.probs([row.best])
        return row


def words(rng: Random, n: int) -> list[str]:
    """Made-up words, half of them with a space in front (in the byte alphabet)."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [rng.choice(("", "Ġ")) + "".join(rng.choices(letters, k=rng.randint(2, 8))) for _ in range(n)]


def tokenizer(name: str, size: int, shared: list[str], rng: Random) -> Voting:
    """A byte-level BPE whose pieces are words and all their beginnings, each made by a merge of its own."""
    vocab = {piece: i for i, piece in enumerate([END, *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    merges = []
    while len(vocab) < size:
        word = rng.choice(shared) if rng.random() < SHARED else words(rng, 1)[0]
        for end in range(2, len(word) + 1):
            if word[:end] not in vocab and len(vocab) < size:
                vocab[word[:end]] = len(vocab)
                merges.append((word[: end - 1], word[end - 1]))
    made = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([END])
    return Voting(Reader(made, read_vocabulary(made, name=name, size=size, eos_ids=[0], silent_ids=set())))


def vote_seconds(voting: list[Voting], kind: str, votes: int) -> float:
    """The median time of a vote and the choice of its best symbol."""
    voter, rng, seconds = Voter(voting, SafeConfig(ensemble_type=kind)), Random(kind), []
    pieces = [s for model in voting for s in rng.sample(model.vocabulary.symbols, CANDIDATES // 3) if s != EOS]
    for n in range(WARM_UP + votes):
        rng.shuffle(pieces)
        rows = [model.after(1 + n % 3, pieces) for model in voting]
        start = time.perf_counter()
        assert voter.vote(rows).best is not None
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[WARM_UP:])  # the first make the union and tokenize the candidates


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, default=300)
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    args = parser.parse_args()
    torch.manual_seed(0)
    shared = words(Random(0), 200_000)
    voting = [tokenizer(f"of {size}", size, shared, Random(size)) for size in SIZES]
    start = time.perf_counter()
    union = VocabularyUnion([model.vocabulary for model in voting])
    figures = {
        "union_symbols": len(union.symbols),
        "union_seconds": time.perf_counter() - start,
        "unite_ms": 1e3 * vote_seconds(voting, "unite", args.votes),
        "gac_ms": 1e3 * vote_seconds(voting, "gac", args.votes),
    }
    print(f"vocabularies of {', '.join(f'{size:,}' for size in SIZES)} ids, {torch.get_num_threads()} threads")
    print("UniTE vote {unite_ms:.2f} ms, GaC vote {gac_ms:.2f} ms, "
          "union of {union_symbols:,} symbols built in {union_seconds:.2f} s".format(**figures))  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
