"""`python -m safe.tokenizers`: its figures against counting by hand, and its errors."""

import csv
import io
import json
from collections import Counter

import pytest

from safe.loading import LoadOptions, load_reader
from safe.tokenizers import compare, cuts_of, main, read_words, report, short_names
from tests.toys import save_toy

TEXT = "Anna sells 123 apples each day; how many apples are left? café 漢字 Straße\n\nmuch  much more"


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toys")
    return [str(save_toy(folder / kind, kind)) for kind in ("gpt2", "gemma", "qwen")]


@pytest.fixture
def words_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_the_figures_are_what_one_counts_by_hand(toys):
    words = Counter(f" {word}".encode() for word in TEXT.split())
    readers = tuple(load_reader(toy, LoadOptions(device="cpu")) for toy in toys[:2])
    pair = compare(("a", "b"), readers, tuple(cuts_of(reader, words) for reader in readers), words)

    def starts(reader, word):
        pieces = [reader.vocabulary.bytes_of(i) for i in reader.read(word).ids]
        return [sum(map(len, pieces[:k])) for k in range(len(pieces))]

    listed = [(starts(readers[0], word), starts(readers[1], word)) for word in words.elements()]
    both = sum(len(set(a) & set(b)) for a, b in listed)
    assert pair.first_in_second == both / sum(len(a) for a, _ in listed)
    assert pair.second_in_first == both / sum(len(b) for _, b in listed)
    assert pair.cut_alike == sum(starts(readers[0], w) == starts(readers[1], w) for w in words) / len(words)
    vocabularies = [{s for s in reader.vocabulary.symbols if isinstance(s, bytes)} for reader in readers]
    assert pair.shared_symbols == len(vocabularies[0] & vocabularies[1])
    assert (pair.first_symbols, pair.second_symbols) == tuple(map(len, vocabularies))


def test_a_tokenizer_is_like_itself(toys):
    words = Counter([b" apples", b" 123", "漢字".encode()])
    reader = load_reader(toys[0], LoadOptions(device="cpu"))
    cuts = cuts_of(reader, words)
    pair = compare(("a", "b"), (reader, reader), (cuts, cuts), words)
    assert (pair.cut_alike, pair.first_in_second, pair.second_in_first) == (1, 1, 1)
    assert pair.shared_symbols == pair.first_symbols == pair.second_symbols
    assert "All 2 cut 100.0% of the words alike." in report(
        {"a": reader, "b": reader}, {"a": cuts, "b": cuts}, [pair], words
    )


def test_three_tokenizers_in_markdown_and_csv(toys, words_file, capsys):
    assert main([*toys, "--words", str(words_file)]) == 0
    markdown = capsys.readouterr().out
    assert markdown.startswith("15 distinct words, 17 in all.")
    assert all(f"| {a} | {b} | " in markdown for a, b in [("gpt2", "gemma"), ("gpt2", "qwen"), ("gemma", "qwen")])
    assert main([*toys, "--words", str(words_file), "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["first"], row["second"]) for row in rows] == [("gpt2", "gemma"), ("gpt2", "qwen"), ("gemma", "qwen")]
    assert all(0 < float(row["cut_alike"]) <= 1 for row in rows)


@pytest.mark.parametrize(
    "name, content",
    [
        ("rows.jsonl", '{"question": "two words", "n": 3}\n\n{"choices": {"text": ["two", "more"]}}\n'),
        ("rows.json", json.dumps([{"q": "two words"}, {"c": ["two more", None, 1]}])),
        ("rows.txt", "two words\ntwo\tmore"),
    ],
)
def test_words_come_from_every_string(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert read_words(tmp_path / name) == {b" two": 2, b" words": 1, b" more": 1}


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("none.txt", None, "cannot read"),
        ("empty.txt", b" \n", "holds no words"),
        ("torn.jsonl", b'{"question": "a', "cannot be read as .jsonl"),
        ("latin.txt", b"caf\xe9", "cannot be read as .txt"),
    ],
)
def test_a_bad_word_list_is_one_line_and_status_2(tmp_path, toys, capsys, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main([*toys[:2], "--words", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_bad_model_is_one_line_and_status_2(tmp_path, toys, words_file, capsys):
    assert main([toys[0], str(tmp_path / "missing"), "--words", str(words_file)]) == 2
    error = capsys.readouterr().err
    assert "missing" in error and error.count("\n") == 1


def test_names_are_short_where_they_differ():
    assert short_names(["a/x", "b/y/"]) == ["x", "y"]
    assert short_names(["a/x", "b/x", "c"]) == ["a/x", "b/x", "c"]
