"""Bytes and boundaries (SPEC 2), on every kind of tokenizer and random Unicode."""

import unicodedata
from random import Random

import pytest

from ensemble.tokens import EOS, TokenizerError, read_vocabulary
from safe.reader import Reader, Transcript
from tests.toy_text import random_text
from tests.toys import KINDS, LOSSY, end_ids, toy_tokenizer

SEEDS = range(25)


def reader_of(kind: str, seed: int = 0) -> Reader:
    tokenizer = toy_tokenizer(kind, seed)
    backend = tokenizer.backend_tokenizer
    ends = end_ids(kind, seed) if kind in KINDS else [tokenizer.eos_token_id]
    vocabulary = read_vocabulary(
        backend, name=kind, size=len(tokenizer) + 3, eos_ids=ends, silent_ids=tokenizer.all_special_ids
    )
    return Reader(backend, vocabulary)


@pytest.fixture(scope="module", params=KINDS)
def reader(request) -> Reader:
    return reader_of(request.param)


def normalized(reader: Reader, text: str) -> str:
    normalizer = reader._backend.normalizer
    text = normalizer.normalize_str(text) if normalizer else text
    byte_level = (
        reader.read("▁".encode()).ids and reader.vocabulary.join(reader.read("▁".encode()).ids) != b" "
    )
    return text if byte_level else text.replace("▁", " ")  # to SentencePiece it is a space


@pytest.mark.parametrize("kind", LOSSY)
def test_a_lossy_tokenizer_is_refused_by_name(kind):
    with pytest.raises(TokenizerError, match=kind):
        reader_of(kind)


@pytest.mark.parametrize("seed", SEEDS)
def test_tokens_join_to_the_text(reader, seed):
    """Byte for byte, or to what the normaliser makes of it; never a special token, never a phantom space."""
    text = random_text(Random(seed), 40).replace("<0x", "<0 x")  # Unigram reads that as the byte it spells
    reading = reader.read(text.encode())
    assert reader.vocabulary.join(reading.ids) == normalized(reader, text).encode()
    assert reading.complete
    assert all(isinstance(reader.vocabulary.symbols[i], bytes) for i in reading.ids)


@pytest.mark.parametrize("seed", SEEDS)
def test_starts_are_where_the_two_sides_of_a_text_meet(reader, seed):
    """Every start splits the text so that the tokens before it are the (normalised) text before it."""
    text = random_text(Random(seed), 30).replace("<0x", "<0 x")
    reading = reader.read(text.encode())
    assert reading.starts[0] == 0
    for offset, k in reading.starts.items():
        assert 0 <= offset < len(text.encode())
        before = reader.vocabulary.join(reading.ids[:k])
        if before == text.encode()[:offset]:
            continue
        left, right = text.encode()[:offset].decode(), text.encode()[offset:].decode()
        assert before == normalized(reader, left).encode()
        assert normalized(reader, left) + normalized(reader, right) == normalized(reader, text)


def test_a_changed_character_is_no_boundary_inside():
    reader = reader_of("qwen")
    text = "xe\u0301y"  # the reader makes one character of e and its accent
    starts = reader.read(text.encode()).starts
    assert {0, 1, 4} >= set(starts) >= {0} and 2 not in starts and 3 not in starts


def test_cut_utf8_is_read_to_its_last_whole_character(reader):
    text = "so 漢".encode()
    for cut in (1, 2):
        reading = reader.read(text[:-cut])
        assert not reading.complete and reader.vocabulary.join(reading.ids) == b"so "
        assert len(text) - cut not in reading.starts
    assert reader.read(b"ab\xff cd").ids == reader.read(b"ab").ids


@pytest.mark.parametrize("text", ["<|im_end|>", "<|endoftext|>", "</s>", "<eos>", "<s>", "<bos>", "<unk>"])
def test_control_tokens_written_as_text_are_text(reader, text):
    reading = reader.read(text.encode())
    assert reader.vocabulary.join(reading.ids) == text.encode()
    assert EOS not in {reader.vocabulary.symbols[i] for i in reading.ids}


@pytest.mark.parametrize("seed", SEEDS)
def test_rereading_the_tail_equals_rereading_everything(reader, seed):
    """The response grows by random pieces of bytes, cut anywhere; windows behind it come and go."""
    rng = Random(seed)
    text, response = random_text(rng, 60).encode(), bytearray()
    transcript, settled = Transcript(reader), []
    while len(response) < len(text):
        step = rng.randint(1, 9)
        response += text[len(response) : len(response) + step]
        window = (
            text[len(response) : len(response) + rng.randint(0, 9)] if rng.random() < 0.7 else b" zzz\xc3"
        )
        before = transcript.settled_ids
        reading = transcript.read(response, window)
        whole = reader.read(bytes(response) + window)
        settled = settled[:before]
        assert settled + reading.ids == whole.ids
        assert reading.complete == whole.complete and reading.end == len(whole.ids)
        assert {o: k for o, k in whole.starts.items() if o >= transcript.settled} == reading.starts
        transcript.settle(response, reading)
        settled = (settled + reading.ids)[: transcript.settled_ids]


def test_long_answers_are_settled(reader):
    """What is read again stays short however long the answer is."""
    transcript, response, longest = Transcript(reader), bytearray(), 0
    for word in (f" word{n} and" for n in range(300)):
        response += word.encode()
        reading = transcript.read(response, b" next")
        longest = max(longest, len(reading.ids))
        transcript.settle(response, reading)
    assert longest < 60


def test_spelling_a_foreign_symbol(reader):
    for symbol in (b" zebra", "漢字".encode(), b"\xf0\x9f", b"\x80"):
        ids = reader.spell(symbol)
        if unicodedata.is_normalized("NFKC", symbol.decode(errors="ignore")):
            assert reader.vocabulary.join(ids) == symbol


def test_ordinary_token_before_byte_fallback(reader):
    """SPEC 3: an `a` is written as `a`, not as `<0x61>`, though both are its bytes."""
    for symbol, ids in reader.vocabulary.ids_of.items():
        fallback = [i in reader.vocabulary.byte_fallback for i in ids]
        assert fallback == sorted(fallback), symbol
        assert list(ids) == sorted(ids, key=lambda i: (i in reader.vocabulary.byte_fallback, i))


def test_padding_and_special_ids_have_no_bytes(reader):
    kind = reader.vocabulary.name
    tokenizer = toy_tokenizer(kind)
    assert reader.vocabulary.symbols[len(tokenizer) :] == (None,) * 3
    for token in set(tokenizer.all_special_ids) - set(end_ids(kind)):
        assert reader.vocabulary.symbols[token] is None
    for token in end_ids(kind):
        assert reader.vocabulary.symbols[token] == EOS
