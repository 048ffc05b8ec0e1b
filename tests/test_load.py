"""Loading: every local row of the five benchmarks, every kind of broken row, and no network."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from data import load as load_module
from data import read
from data.load import DataError, load
from data.subjects import ALL, BBH_DEFAULT, BBH_TARGETS, DEFAULT, MMLU_DEFAULT

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
needs_rows = pytest.mark.skipif(not SHARED.is_dir(), reason="the benchmarks' rows are not in ../shared/data")

GSM8K = {"question": "How many legs have 3 cats?", "answer": "3 * 4 = <<3*4=12>>12\n#### 12"}
MATH = {
    "problem": "What is $1+1$?",
    "solution": "$\\boxed{2}$",
    "answer": "2",
    "subject": "Algebra",
    "level": 1,
    "unique_id": "test/algebra/1.json",
}
ARC = {
    "id": "q1",
    "question": "Which one flies?",
    "choices": {"text": ["stone", "bird", "fish"], "label": ["1", "2", "3"]},
    "answerKey": "2",
}
BBH = {"input": "Which is a bird?\nOptions:\n(A) stone\n(B) owl", "target": "(B)"}
MMLU = {
    "question": "2 + 2 =",
    "choices": ["3", "4", "5", "22"],
    "answer": 1,
    "error_type": "ok",
    "source": None,
    "correct_answer": None,
    "potential_reason": None,
}
ROWS = {"gsm8k": GSM8K, "toy": GSM8K, "math500": MATH, "arc": ARC, "bbh": BBH, "mmlu-redux": MMLU}
STEMS = {"bbh": "snarks", "mmlu-redux": "anatomy"}


def write(folder: Path, name: str, *rows, suffix: str = ".jsonl") -> Path:
    path = folder / f"{STEMS.get(name, 'rows')}{suffix}"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def message(*args, **kwargs) -> str:
    with pytest.raises(DataError) as error:
        load(*args, **kwargs)
    assert "\n" not in str(error.value)
    return str(error.value)


@needs_rows
def test_every_local_row():
    """All 15,202 rows are read; each is asked or skipped by name; golds have the form of their benchmark."""
    counts = {}
    for line in (SHARED / "MANIFEST.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        file, rows, *_ = line.split("\t")
        if file.endswith(".jsonl"):
            counts[file] = int(rows)
    assert sum(counts.values()) == 1319 + 500 + 1172 + 6511 + 5700
    folders = {"arc": "arc_challenge", "mmlu-redux": "mmlu_redux"}
    asked = {}
    for name in ("gsm8k", "math500", "arc", "bbh", "mmlu-redux"):
        folder = SHARED / folders.get(name, name)
        loaded = load(name, folder, subjects=["all"] if name in ALL else None)
        asked[name] = loaded.examples
        ids = [item.id for item in (*loaded.examples, *loaded.skipped)]
        assert len(set(ids)) == len(ids)
        rows = Counter(id.split("/")[0] for id in ids) if name in ALL else {None: len(ids)}
        files = {file: count for file, count in counts.items() if file.startswith(folder.name + "/")}
        assert sorted(rows.values()) == sorted(files.values())
        assert all(rows[Path(file).stem] == count for file, count in files.items() if name in ALL)
    assert {name: len(examples) for name, examples in asked.items()} == {
        "gsm8k": 1319,
        "math500": 500,
        "arc": 1172,
        "bbh": 6511 - 3,
        "mmlu-redux": 5330 - 1 + 101,
    }
    assert all(re.fullmatch(r"-?\d+(,\d{3})*", example.gold) for example in asked["gsm8k"])
    for example in (*asked["arc"], *asked["mmlu-redux"]):
        assert example.gold in "ABCDE"[: len(example.choices)]
    assert all(re.fullmatch(BBH_TARGETS[example.subject], example.gold) for example in asked["bbh"])
    assert Counter(len(example.choices) for example in asked["arc"]) == {4: 1165, 3: 4, 5: 3}


@needs_rows
def test_digit_labels_become_letters():
    rows = {}
    for line in (SHARED / "arc_challenge" / "test.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows[row["id"]] = row
    digits = [
        (example, rows[example.id])
        for example in load("arc", SHARED / "arc_challenge").examples
        if rows[example.id]["answerKey"].isdigit()
    ]
    assert len(digits) == 22
    for example, row in digits:
        assert example.gold == "ABCD"[int(row["answerKey"]) - 1]
        assert example.choices == tuple(row["choices"]["text"])


@needs_rows
def test_known_broken_rows():
    loaded = load("bbh", SHARED / "bbh", subjects=["all"])
    assert [item.id for item in loaded.skipped] == [
        "movie_recommendation/163",
        "ruin_names/99",
        "ruin_names/144",
    ]
    loaded = load("mmlu-redux", SHARED / "mmlu_redux", subjects=["all"])
    assert sum(example.repaired for example in loaded.examples) == 101
    reasons = Counter(item.reason for item in loaded.skipped)
    assert reasons["error_type: expert"] == 32 and reasons["error_type: multiple_correct_answers"] == 39
    assert sum(n for reason, n in reasons.items() if "wrong_groundtruth" in reason) == 6
    named = {item.id for item in loaded.skipped if "published fault" in item.reason}
    assert named == {"high_school_microeconomics/99"}
    # A skipped row does not renumber those after it.
    virology = load("mmlu-redux", SHARED / "mmlu_redux", subjects=["virology"])
    assert "virology/25" in {example.id for example in virology.examples if example.repaired}


@needs_rows
def test_defaults_and_limit():
    assert len(BBH_DEFAULT) == 15 and len(MMLU_DEFAULT) == 30
    assert {name: len(names) for name, names in ALL.items()} == {"bbh": 27, "mmlu-redux": 57}
    assert all(set(DEFAULT[name]) < set(ALL[name]) for name in ALL)
    loaded = load("bbh", SHARED / "bbh", limit=2)
    assert Counter(e.subject for e in loaded.examples) == dict.fromkeys(BBH_DEFAULT, 2)
    assert [e.id for e in load("gsm8k", SHARED / "gsm8k", limit=3).examples] == ["0", "1", "2"]
    # A row skipped on the way is made up for by the next one, and only such rows are counted.
    some = load("mmlu-redux", SHARED / "mmlu_redux", subjects=["virology"], limit=50)
    assert len(some.examples) == 50 and some.skipped
    last = int(some.examples[-1].id.split("/")[1])
    assert all(int(item.id.split("/")[1]) < last for item in some.skipped)
    chosen = load("bbh", SHARED / "bbh", subjects=["snarks", "navigate", "snarks"], limit=1)
    assert [e.subject for e in chosen.examples] == ["snarks", "navigate"]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
def test_formats(tmp_path, name, suffix):
    """The three formats, as a file or as a folder, give the same examples; nothing is written beside them."""
    path = write(tmp_path, name, ROWS[name], suffix=suffix)
    if suffix == ".json":
        path.write_text(json.dumps([ROWS[name]]), encoding="utf-8")
    if suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([ROWS[name]]), path)
    wanted = write(tmp_path, name, ROWS[name], suffix=".jsonl") if suffix == ".jsonl" else path
    loaded = load(name, wanted)
    assert len(loaded.examples) == 1 and loaded.source == str(wanted)
    assert list(loaded.sha256) == [str(wanted)]
    folder = load(name, f"{tmp_path}/", subjects=[STEMS[name]] if name in STEMS else None)
    assert folder.examples == loaded.examples
    assert list(tmp_path.iterdir()) == [path]
    assert loaded.examples[0].gold == {"gsm8k": "12", "toy": "12", "math500": "2", "bbh": "(B)"}.get(
        name, "B"
    )


def test_json_spellings(tmp_path):
    path = tmp_path / "rows.json"
    for text in (
        json.dumps({"canary": "x", "examples": [GSM8K, GSM8K]}),
        f"{json.dumps(GSM8K)}\n{json.dumps(GSM8K)}\n",
        "\ufeff" + json.dumps([GSM8K, GSM8K], indent=2),
    ):
        path.write_text(text, encoding="utf-8")
        assert len(load("gsm8k", path).examples) == 2
    path = tmp_path / "lines.jsonl"
    odd = {**GSM8K, "question": "One\u2028two\u0085three?"}  # not line ends in JSON lines
    path.write_text(f"\n{json.dumps(odd, ensure_ascii=False)}\r\n\n", encoding="utf-8")
    assert load("gsm8k", path).examples[0].question == odd["question"]


BROKEN = [
    ("gsm8k", {"question": None}, "'question' must be text"),
    ("gsm8k", {"question": "  \n"}, "'question' is empty"),
    ("gsm8k", {"question": "half \ud83d"}, "lone surrogate"),
    ("gsm8k", {"answer": ...}, "column 'answer' is missing"),
    ("gsm8k", {"answer": "so 12"}, "it holds none"),
    ("gsm8k", {"answer": "#### 1 #### 2"}, "it holds 2"),
    ("gsm8k", {"answer": "#### twelve"}, "must be a number"),
    ("math500", {"answer": ""}, "'answer' is empty"),
    ("math500", {"problem": 3}, "'problem' must be text, got 3"),
    ("math500", {"unique_id": ...}, "column 'unique_id' is missing"),
    ("arc", {"answerKey": "B"}, "'B' is none of the labels 1, 2, 3"),
    ("arc", {"choices": ["a", "b"]}, "'choices' must be"),
    ("arc", {"choices": {"text": ["a", "b"], "label": ["1"]}}, "'choices.label' must be a list of 2 to 26"),
    ("arc", {"choices": {"text": ["a", "b"], "label": ["2", "2"]}}, "a label for each"),
    ("arc", {"choices": {"text": ["", "b"], "label": ["1", "2"]}}, "'choices.text[0]' is empty"),
    ("bbh", {"target": "B"}, "is no answer of snarks"),
    ("bbh", {"target": "(C)"}, "none of the options"),
    ("bbh", {"input": ...}, "column 'input' is missing"),
    ("mmlu-redux", {"answer": 4}, "0 to 3"),
    ("mmlu-redux", {"answer": True}, "'answer' must be the index"),
    ("mmlu-redux", {"answer": "1"}, "'answer' must be the index"),
    ("mmlu-redux", {"error_type": "OK"}, "'error_type' 'OK' is none of"),
    ("mmlu-redux", {"choices": "abcd"}, "'choices' must be a list"),
    ("mmlu-redux", {"error_type": "wrong_groundtruth", "correct_answer": 2}, "'correct_answer' must be text"),
]


@pytest.mark.parametrize("name, change, what", BROKEN)
def test_broken_rows(tmp_path, name, change, what):
    row = {column: value for column, value in {**ROWS[name], **change}.items() if value is not ...}
    path = write(tmp_path, name, ROWS[name] | {"id": "a", "unique_id": "a"}, row)
    told = message(name, path, limit=1)  # a limit does not hide what is broken behind it
    assert told.startswith(f"{path}, line 2: ") and what in told and told.endswith("mend or remove the row")


TORN = [
    (b'{"question": "a', "line 2: not JSON (column 14: Unterminated string"),
    (b"[1, 2]", "line 2: a row must be an object"),
    (b'"text"', "line 2: a row must be an object"),
    (b'{"question": "\xff"}', "line 2: not UTF-8"),
    (b"[" * 100_000, "line 2: JSON that cannot be read"),
    (b'{"question": ' + b"9" * 5000 + b"}", "line 2: JSON that cannot be read"),
]


@pytest.mark.parametrize("line, what", TORN, ids=[what for _, what in TORN])
def test_torn_lines(tmp_path, line, what):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(json.dumps(GSM8K).encode() + b"\n" + line + b"\n")
    assert what in message("gsm8k", path)


def test_broken_files(tmp_path):
    def file(name: str, content: bytes = b"") -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    assert "holds no rows" in message("gsm8k", file("empty.jsonl", b"\n \n"))
    assert "holds no rows" in message("gsm8k", file("list.json", b"[]"))
    assert "must be a list of rows" in message("gsm8k", file("number.json", b"3"))
    assert "not JSON" in message("gsm8k", file("torn.json", b'[{"question": "a"'))
    assert "no readable parquet file" in message("gsm8k", file("a.parquet", b"PAR1 no"))
    assert "is no folder and no .jsonl" in message("gsm8k", file("rows.csv"))
    assert "must hold one" in message("gsm8k", tmp_path)
    assert "No such file or directory" in message("gsm8k", tmp_path / "nothing.jsonl")
    (tmp_path / "none").mkdir()
    assert "(found: none)" in message("gsm8k", tmp_path / "none")


def test_same_id_twice(tmp_path):
    assert "its id 'q1' stands in line 1 already" in message("arc", write(tmp_path, "arc", ARC, ARC))


def test_names_and_subjects(tmp_path):
    path = write(tmp_path, "bbh", BBH)
    assert "gsm8k" in message("gsm9k")
    assert "did you mean snarks?" in message("bbh", path, subjects=["snark"])
    assert "holds snarks alone; give a folder" in message("bbh", path, subjects=["navigate"])
    assert "has no navigate.jsonl" in message("bbh", tmp_path, subjects=["snarks", "navigate"])
    assert "26 of 27 subjects are missing" in message("bbh", tmp_path, subjects=["all"])
    assert "boolean_expressions" in message("bbh", None, subjects=["boolean"])
    assert "no subject" in message("bbh", path.parent, subjects=[])
    assert "has no subjects" in message("gsm8k", path, subjects=["all"])
    assert "limit must be at least 1" in message("gsm8k", path, limit=0)
    other = path.rename(tmp_path / "rows.jsonl")
    assert "must be named after the subject" in message("bbh", other)
    write(tmp_path, "bbh", BBH)
    write(tmp_path, "bbh", BBH, suffix=".json")
    assert "keep one file for a subject" in message("bbh", tmp_path, subjects=["snarks"])


REPAIRS = [
    ("2", 1, "C"),
    ("D", 1, "D"),
    (" A ", 1, "A"),
    ("22", 1, "D"),  # the whole text of one option
    ("3", 1, "D"),  # an index before it is an option's text
    (None, 1, None),
    ("B", 1, None),  # repeats the label that is said to be wrong
    ("B,C", 0, None),
    ("(0, 1)", 2, None),
    ("7", 0, None),
    ("E", 0, None),
    ("none of them", 0, None),
]


@pytest.mark.parametrize("correction, label, gold", REPAIRS)
def test_repair_of_wrong_labels(tmp_path, correction, label, gold):
    wrong = {**MMLU, "answer": label, "error_type": "wrong_groundtruth", "correct_answer": correction}
    loaded = load("mmlu-redux", write(tmp_path, "mmlu-redux", MMLU, wrong))
    assert not loaded.examples[0].repaired
    if gold is None:
        assert len(loaded.examples) == 1 and loaded.skipped[0].id == "anatomy/1"
    else:
        assert loaded.examples[1].gold == gold and loaded.examples[1].repaired


def test_known_fault_that_was_mended_is_asked(tmp_path):
    row = {"input": "Find a movie similar to X:\nOptions:\n(A) Monsters, Inc\n(B) Y", "target": "(A)"}
    path = tmp_path / "movie_recommendation.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for _ in range(164)), encoding="utf-8")
    assert len(load("bbh", path).examples) == 164


def test_nothing_left_to_ask(tmp_path):
    path = write(tmp_path, "mmlu-redux", {**MMLU, "error_type": "expert"})
    assert "none of its rows can be asked" in message("mmlu-redux", path)


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """A machine without network and with an empty cache."""
    import datasets
    import huggingface_hub.constants

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    read.hub_commit.cache_clear()
    yield
    read.hub_commit.cache_clear()


@pytest.mark.parametrize("name", load_module.HUB)
def test_no_network_and_no_path(offline, name):
    told = message(name)
    assert load_module.HUB[name][0] in told and "--data_path FILE|DIR" in told


def test_hub_out_of_reach_is_asked_once(monkeypatch):
    """Where the one question to the Hub fails the library is told to stay offline: it would retry for long."""
    import datasets

    def load_dataset(*_, **__):
        assert datasets.config.HF_HUB_OFFLINE
        raise ConnectionError("not cached")

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(read, "hub_commit", lambda hub_id: (None, "no route\nto host"))
    assert "openai/gsm8k (main, test) from the Hugging Face Hub (no route to host)" in message("gsm8k")


@pytest.mark.parametrize("name", load_module.HUB)
def test_rows_from_the_hub(monkeypatch, name):
    """The Hub's tables go through the same checks as local rows; each subject is a config."""
    import datasets

    asked = []

    def load_dataset(hub_id, config, split):
        asked.append((hub_id, config, split))
        return datasets.Dataset.from_list([ROWS[name]])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(read, "hub_commit", lambda hub_id: ("0123abc", None))
    subject = STEMS.get(name)
    loaded = load(name, subjects=[subject] if subject else None)
    hub_id, config = load_module.HUB[name]
    assert asked == [(hub_id, config or subject, "test")]
    assert loaded.source == f"{hub_id}@0123abc" and not loaded.sha256
    assert len(loaded.examples) == 1 and loaded.examples[0].subject == subject


def test_broken_row_of_the_hub_names_its_place(monkeypatch):
    import datasets

    monkeypatch.setattr(
        datasets,
        "load_dataset",
        lambda *_, **__: datasets.Dataset.from_list([GSM8K, {**GSM8K, "answer": "12"}]),
    )
    monkeypatch.setattr(read, "hub_commit", lambda hub_id: ("0123abc", None))
    assert message("gsm8k").startswith("openai/gsm8k@0123abc, row 2: ")
