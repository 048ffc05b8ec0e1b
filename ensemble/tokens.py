"""Token ids as bytes: the common language of models whose tokenizers differ (no torch here).

Strings are never compared. The pieces of two vocabularies are spelt in two alphabets (`đ` is the raw byte 0x11 in a
byte-level BPE and a letter in a SentencePiece vocabulary), so every id is turned into the bytes it adds to a text,
once, when the tokenizer is loaded.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

EOS = "<eos>"
"""The shared end event; a str, so that no byte string equals it."""

Symbol = bytes | str
"""What models are compared on: the bytes of a token, or EOS."""

SPACE = "▁"  # how SentencePiece spells a space
BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class TokenizerError(ValueError):
    """A tokenizer that cannot be read byte for byte; the message names it and says why."""


@dataclass(frozen=True)
class Vocabulary:
    """The symbol each id of one model stands for.

    symbols: index = id, length V (the model's, padding included): bytes, EOS, or None for ids that add nothing.
    byte_fallback: the ids spelt `<0xNN>`, which an ordinary token with the same byte precedes.
    ids_of: symbol -> its ids, the one to write first (SPEC 3: ordinary before byte-fallback, then the lowest).
    """

    name: str
    symbols: tuple[Symbol | None, ...]
    byte_fallback: frozenset[int] = frozenset()
    ids_of: dict[Symbol, tuple[int, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        ids_of: dict[Symbol, tuple[int, ...]] = {}
        late = sorted(self.byte_fallback)
        early = (i for i in range(len(self.symbols)) if i not in self.byte_fallback)
        for i in [*early, *late]:
            if (symbol := self.symbols[i]) is not None:
                ids_of[symbol] = (*ids_of.get(symbol, ()), i)
        object.__setattr__(self, "ids_of", ids_of)

    def __len__(self) -> int:
        return len(self.symbols)

    def __contains__(self, symbol: Symbol) -> bool:
        return symbol in self.ids_of

    def bytes_of(self, token: int) -> bytes:
        """The bytes one id adds to a text; EOS and ids without a symbol add none."""
        symbol = self.symbols[token]
        return symbol if isinstance(symbol, bytes) else b""

    def join(self, tokens: Iterable[int]) -> bytes:
        """The bytes a sequence of ids adds to a text."""
        return b"".join(map(self.bytes_of, tokens))

    def spell_bytes(self, text: bytes) -> list[int]:
        """One id per byte: the only way to write bytes that are no text by themselves.

        Raises TokenizerError if the vocabulary lacks one of the bytes."""
        try:
            return [self.ids_of[bytes([byte])][0] for byte in text]
        except KeyError as missing:
            raise TokenizerError(f"{self.name}: its tokenizer has no token for the byte {missing}") from None


def read_vocabulary(
    backend: Tokenizer, *, name: str, size: int, eos_ids: Iterable[int], silent_ids: Iterable[int]
):
    """The Vocabulary of a fast tokenizer, taken from its own decoder (SPEC 2).

    size: number of logits of the model; ids from the tokenizer's length up to it have no symbol.
    eos_ids: ids that end an answer. silent_ids: special ids without bytes (BOS, pad, image ...).
    Raises TokenizerError for a decoder that is neither byte-level nor SentencePiece's.
    """
    parts = json.loads(backend.to_str())
    spell = _spelling(parts, name)
    added = {token["id"]: token for token in parts["added_tokens"]}
    silent = {*silent_ids, *(i for i, token in added.items() if token["special"])}
    if (unknown := parts["model"].get("unk_token")) is not None:
        silent.add(backend.token_to_id(unknown))
    if parts["model"].get("unk_id") is not None:
        silent.add(parts["model"]["unk_id"])
    symbols: list[Symbol | None] = [None] * size
    fallback = set()
    for piece, token in backend.get_vocab(with_added_tokens=True).items():
        if token >= size or token in silent:
            continue
        symbols[token] = spell(piece, token in added) or None
        if BYTE_PIECE.fullmatch(piece) and symbols[token] != piece.encode():
            fallback.add(token)
    for token in eos_ids:
        if token < size:
            symbols[token] = EOS
    return Vocabulary(name, tuple(symbols), frozenset(fallback))


def _spelling(parts: dict, name: str):
    """A function (piece, is it an added token?) -> bytes, by the kind of decoder."""
    model, decoders = parts["model"], _flat(parts["decoder"], "decoders")
    kinds = {decoder["type"] for decoder in decoders}
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise TokenizerError(f"{name}: pieces with a prefix or suffix mark cannot be read as bytes")
    if kinds == {"ByteLevel"}:
        byte_of = _byte_alphabet()

        def byte_level(piece: str, is_added: bool) -> bytes:
            # an added token is matched in the text as it is written, never through the byte alphabet
            known = not is_added and all(char in byte_of for char in piece)
            return bytes(byte_of[char] for char in piece) if known else piece.encode()

        return byte_level
    spaces = any(
        d["type"] == "Replace" and d["pattern"] == {"String": SPACE} and d["content"] == " " for d in decoders
    )
    if not kinds <= {"Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"} or not (
        spaces or "Metaspace" in kinds
    ):
        wanted = ", ".join(sorted(kinds)) or "none"
        raise TokenizerError(f"{name}: its decoder ({wanted}) is neither byte-level nor SentencePiece's")

    def sentencepiece(piece: str, is_added: bool) -> bytes:
        if "ByteFallback" in kinds and (match := BYTE_PIECE.fullmatch(piece)):
            return bytes([int(match[1], 16)])
        return piece.replace(SPACE, " ").encode()

    return sentencepiece


def _flat(part: dict | None, key: str) -> list[dict]:
    """A component of a tokenizer as the list of its steps (none, one, or a Sequence of them)."""
    if part is None:
        return []
    return (
        [step for inner in part[key] for step in _flat(inner, key)] if part["type"] == "Sequence" else [part]
    )


def _byte_alphabet() -> dict[str, int]:
    """Character -> byte of byte-level BPE: printable Latin-1 stands for itself, the others follow U+0100 in order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    alphabet = {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
    assert set(alphabet) == set(ByteLevel.alphabet())
    return alphabet
