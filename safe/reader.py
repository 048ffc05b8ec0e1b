"""How a model reads the shared response: text -> its ids, and the byte offsets where its tokens start (SPEC 2).

A model that verifies has its own tokenization of the response. It is made by a copy of the model's tokenizer from
which everything that belongs to the start of a document is taken (dummy prefix, BOS, padding), and in which special
tokens are off: `<|im_end|>` written as text is text.
"""

import json
import unicodedata
from dataclasses import dataclass
from itertools import accumulate

from tokenizers import Tokenizer

from ensemble.tokens import Symbol, TokenizerError, Vocabulary

CHECK_TEXT = (
    "  Straße, café, naïve: ¿qué?  Ñandú\n\n  Два слова; 漢字とかな、한국어 텍스트.\t👩‍👩‍👧‍👦 🇫🇷 👍🏽\r\n   \n"
    "x = 12345.67 * (a_1 + b^2) / 10\n\\frac{1}{2}\\sqrt{3} $\\boxed{42}$ <b>&amp;</b>    'quoted' it's don't\n"
    "العربية עברית हिन्दी ไทย — “dash” … € ½₁ \n "
).replace("½", "1⁄2")
"""Must come back byte for byte; NFC and NFKC leave most of it alone, and what they change is checked by offsets."""

UNREACHABLE = "\ufffe" * 8  # a noncharacter
ASCII_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


@dataclass(frozen=True)
class Reading:
    """One text as a model reads it.

    ids: its tokens. starts: byte offset in the text -> index of the token that starts there; offsets inside a
    character that a normaliser changed, or that several tokens share, are not among them. complete: whether the text
    was read to its end (bytes that are no UTF-8 are not); if so its end is a boundary too. first: index of ids[0],
    above 0 where the ids before it are settled. exact: whether the ids join to the text (a normaliser changed nothing).
    """

    ids: list[int]
    starts: dict[int, int]
    complete: bool
    exact: bool = True
    first: int = 0

    @property
    def end(self) -> int:
        """How many ids the whole text has."""
        return self.first + len(self.ids)


class Reader:
    """Tokenizes pieces of the response for one model. Raises TokenizerError if the tokenizer cannot be read exactly."""

    def __init__(self, backend: Tokenizer, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self._backend = _continuing(backend, vocabulary)
        self._first_pieces: dict[bytes, Symbol | None] = {}
        self._check()
        self.cuts_at_words = self._cuts_at_words()
        self._before_space = _inner_neighbours(vocabulary, b" ")
        self._before_newline = _inner_neighbours(vocabulary, b"\n")

    def read(self, text: bytes, *, after_exact: bool = True) -> Reading:
        """The model's own tokens of the longest prefix of text that is UTF-8, and where they start.

        after_exact: whether what stands before the text, if anything, joined to its bytes. Where the whole does not,
        starts come from the character offsets that the tokenizer reports."""
        try:
            string, complete = text.decode(), True
        except UnicodeDecodeError as error:
            text, complete = text[: error.start], False
            string = text.decode()
        encoding = self._backend.encode(string, add_special_tokens=False)
        ids = encoding.ids
        pieces = list(map(self.vocabulary.bytes_of, ids))
        exact = b"".join(pieces) == text
        if exact and after_exact:
            ends = accumulate(map(len, pieces), initial=0)
            starts = {offset: k for k, offset in zip(range(len(ids)), ends, strict=False)}
        else:
            starts = self._starts_by_offsets(string, encoding.offsets)
        return Reading(ids, starts, complete, exact)

    def first_piece(self, symbol: Symbol) -> Symbol | None:
        """The symbol of the first token of this model's tokenization of a symbol; None if it is no text."""
        if not isinstance(symbol, bytes):
            return None
        if symbol not in self._first_pieces:
            reading = self.read(symbol)
            known = reading.complete and reading.ids
            self._first_pieces[symbol] = self.vocabulary.symbols[reading.ids[0]] if known else None
        return self._first_pieces[symbol]

    def spell(self, symbol: bytes) -> list[int]:
        """The ids that write a symbol: the one that stands for it, else this model's own tokenization of it; bytes
        that are no text by themselves are written one by one."""
        if symbol in self.vocabulary:
            return [self.vocabulary.ids_of[symbol][0]]
        reading = self.read(symbol)
        return reading.ids if reading.complete else self.vocabulary.spell_bytes(symbol)

    def spellings(self) -> dict[str, int]:
        """Every piece as the vocabulary spells it, in its own alphabet -> its id. Nothing here compares them."""
        return self._backend.get_vocab(with_added_tokens=True)

    def settled(self, text: bytes, starts: dict[int, int]) -> int:
        """The largest offset of text before which no continuation of it can change the tokens, 0 if there is none.

        Such an offset is where white space follows a word, if no piece of the vocabulary has the two characters
        inside it (so no merge can cross) and the tokenizer is seen to split there.
        """
        if not self.cuts_at_words:
            return 0
        for offset in range(len(text) - 1, 0, -1):
            before, here = text[offset - 1], text[offset]
            free = (here == 0x20 and 0x21 <= before <= 0x7E and before not in self._before_space) or (
                here == 0x0A and before in ASCII_WORD and before not in self._before_newline
            )
            if free and offset in starts:
                return offset
        return 0

    def _starts_by_offsets(self, string: str, offsets: list[tuple[int, int]]) -> dict[int, int]:
        """Starts from the character offsets that the tokenizer reports, where a normaliser changed the text."""
        byte_at = self._byte_offsets_of_whole_characters(string)
        starts, reached = {}, 0
        for k, (start, end) in enumerate(offsets):
            if start >= reached and start in byte_at:  # tokens that share a character report it each
                starts[byte_at[start]] = k
            reached = max(reached, end)
        return starts

    def _byte_offsets_of_whole_characters(self, string: str) -> dict[int, int]:
        """Character index -> byte offset, without the indices inside what the normaliser changes as one."""
        normalize = self._backend.normalizer.normalize_str if self._backend.normalizer else str
        result, offset, group = {}, 0, ""
        for i, char in enumerate(string):
            apart = normalize(group) + normalize(char) == normalize(group + char)
            if apart and not unicodedata.combining(char):
                result[i], group = offset, ""
            group += char
            offset += len(char.encode())
        return result

    def _check(self) -> None:
        """SPEC 2: the check text must come back byte for byte (through the offsets where it is normalised)."""
        normalizer = self._backend.normalizer
        text = normalizer.normalize_str(CHECK_TEXT).replace("▁", " ") if normalizer else CHECK_TEXT
        if unicodedata.normalize("NFKC", text) != unicodedata.normalize("NFKC", CHECK_TEXT):
            raise TokenizerError(f"{self.vocabulary.name}: its tokenizer changes text (case, accents or white space)")
        ids = self._backend.encode(text, add_special_tokens=False).ids
        if (got := self.vocabulary.join(ids)) != text.encode():
            at = next((i for i, (a, b) in enumerate(zip(got, text.encode(), strict=False)) if a != b), len(got))
            lost = text.encode()[at : at + 12].decode(errors="ignore")
            raise TokenizerError(
                f"{self.vocabulary.name}: its tokenizer does not give text back exactly, from {lost!r} on"
            )

    def _cuts_at_words(self) -> bool:
        """Whether the tokenizer is seen to treat the two sides of a word's end independently."""
        text = CHECK_TEXT.encode()
        whole = self.read(text).ids
        cuts = [i for i in range(1, len(text)) if text[i] in b" \n" and text[i - 1] in ASCII_WORD]
        return all(self.read(text[:cut]).ids + self.read(text[cut:]).ids == whole for cut in cuts)


@dataclass
class Transcript:
    """The response as one verifier reads it, kept up to date as the response grows.

    Only the tail behind the last settled offset is tokenized again; what lies before it can no longer change.
    settled_ids: how many ids cover the first `settled` bytes of the response. exact: whether they join to those bytes.
    """

    reader: Reader
    settled: int = 0
    settled_ids: int = 0
    exact: bool = True

    def read(self, response: bytes | bytearray, window: bytes) -> Reading:
        """Tokenize response + window. The ids are those behind the settled ones; offsets and indices in `starts` are
        counted in bytes of the response and in ids of the whole of it."""
        tail = self.reader.read(bytes(response[self.settled :]) + window, after_exact=self.exact)
        starts = {offset + self.settled: k + self.settled_ids for offset, k in tail.starts.items()}
        return Reading(tail.ids, starts, tail.complete, tail.exact, self.settled_ids)

    def settle(self, response: bytes | bytearray, reading: Reading) -> None:
        """Move the settled offset forward, given the last reading and the response it began with."""
        tail = bytes(response[self.settled :])
        offset = self.reader.settled(tail, {o - self.settled: k for o, k in reading.starts.items()})
        if offset:
            settled_ids = reading.starts[self.settled + offset]
            if not reading.exact:
                joined = self.reader.vocabulary.join(reading.ids[: settled_ids - self.settled_ids])
                self.exact = self.exact and joined == tail[:offset]
            self.settled, self.settled_ids = self.settled + offset, settled_ids


def _continuing(backend: Tokenizer, vocabulary: Vocabulary) -> Tokenizer:
    """A copy that tokenizes the middle of a text: no dummy prefix, nothing added, special tokens are plain text."""
    parts = json.loads(backend.to_str())
    parts.update(truncation=None, padding=None, post_processor=None)
    parts["normalizer"] = _without_prefix(parts["normalizer"], "normalizers")
    parts["pre_tokenizer"] = _without_prefix(parts["pre_tokenizer"], "pretokenizers")
    if parts["model"]["type"] == "Unigram":
        # control tokens are pieces of its own vocabulary there: under another name no text can contain them
        for i, (piece, score) in enumerate(parts["model"]["vocab"]):
            if not isinstance(vocabulary.symbols[i], bytes):
                parts["model"]["vocab"][i] = [UNREACHABLE + piece, score]
        pieces = {piece for piece, _ in parts["model"]["vocab"]}
        parts["added_tokens"] = [t for t in parts["added_tokens"] if UNREACHABLE + t["content"] not in pieces]
    copy = Tokenizer.from_str(json.dumps(parts))
    copy.encode_special_tokens = True
    return copy


def _without_prefix(part: dict | None, key: str) -> dict | None:
    """A normalizer or pre-tokenizer without the space that it puts before a text."""
    if part is None or part["type"] == "Prepend":
        return None
    if part["type"] == "Sequence":
        steps = [step for inner in part[key] if (step := _without_prefix(inner, key)) is not None]
        return {**part, key: steps}
    if part["type"] == "Metaspace":
        return {**part, "prepend_scheme": "never"}
    if part["type"] == "ByteLevel":
        return {**part, "add_prefix_space": False}
    return part


def _inner_neighbours(vocabulary: Vocabulary, char: bytes) -> frozenset[int]:
    """The bytes that stand right before char inside some piece: only there can a merge cross."""
    found = set()
    for symbol in vocabulary.symbols:
        if isinstance(symbol, bytes) and char in symbol[1:]:
            found.update(a for a, b in zip(symbol, symbol[1:], strict=False) if b == char[0])
    return frozenset(found)
