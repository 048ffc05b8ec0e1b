"""The prompts of the experiment, letter by letter."""

from pathlib import Path

import pytest

from data.example import DataError, Example
from data.load import load
from data.prompts import load_shots, user_message
from data.subjects import BBH_TARGETS

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
needs_rows = pytest.mark.skipif(not SHARED.is_dir(), reason="the benchmarks' rows are not in ../shared/data")

CHOICE = (
    'Provide your step-by-step reasoning first, and then print "The answer is (X)" where X is the answer choice '
    "(one capital letter), at the end of your response."
)
MATH = "Please reason step by step, and put your final answer within \\boxed{}."


@pytest.mark.parametrize("name", ["gsm8k", "math500", "toy"])
def test_math(name):
    assert user_message(name, Example("0", "What is $1+1$?", "2")) == f"What is $1+1$?\n{MATH}"


@pytest.mark.parametrize("name", ["arc", "mmlu-redux"])
def test_choice(name):
    example = Example("q", "Which flies?", "B", ("stone", "bird", "fish"))
    assert user_message(name, example) == f"Question: Which flies?\nA. stone\nB. bird\nC. fish\n{CHOICE}"


def test_newline_that_ends_a_question():
    """A question of MMLU's nutrition ends with a newline: still one newline before the options. Blanks stay."""
    example = Example("nutrition/0", " Vitamin _ is:\n", "A", ("$1 ", "2"))
    assert user_message("mmlu-redux", example) == f"Question:  Vitamin _ is:\nA. $1 \nB. 2\n{CHOICE}"


def test_bbh():
    example = Example("navigate/0", "Do you return?\nOptions:\n- Yes\n- No", "No", subject="navigate")
    assert user_message("bbh", example, "Walk.\n\nQ: a\nA: b") == (
        "Walk.\n\nQ: a\nA: b\n\nQ: Do you return?\nOptions:\n- Yes\n- No\nA: Let's think step by step."
    )


def test_shots_of_our_own():
    shots = load_shots(BBH_TARGETS)
    assert list(shots) == list(BBH_TARGETS)
    for text in shots.values():
        assert (
            text == text.strip()
            and text.count("\nQ: ") == text.count("\nA: Let's think step by step.\n") == 3
        )


@needs_rows
def test_official_shots():
    """The benchmark's own files lose their canary and dashes, and nothing else."""
    shots = load_shots(BBH_TARGETS, SHARED / "bbh_cot")
    for task, text in shots.items():
        file = (SHARED / "bbh_cot" / f"{task}.txt").read_text(encoding="utf-8")
        assert "canary" not in text and file.split("\n-----\n", 1)[1].strip() == text


def test_shots_of_a_folder(tmp_path):
    (tmp_path / "navigate.txt").write_text("Walk.\n\nQ: a\nA: b\n", encoding="utf-8")
    assert load_shots(["navigate"], tmp_path) == {"navigate": "Walk.\n\nQ: a\nA: b"}
    with pytest.raises(DataError, match=r"cannot read .*snarks\.txt: No such file"):
        load_shots(["navigate", "snarks"], tmp_path)
    (tmp_path / "snarks.txt").write_text("canary\n-----\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"snarks\.txt is empty"):
        load_shots(["snarks"], tmp_path)
    (tmp_path / "snarks.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        load_shots(["snarks"], tmp_path)


@needs_rows
def test_every_prompt_has_single_newlines_at_the_seams():
    """Over all local rows: nothing before or after, and no blank line that the data did not bring."""
    for name, folder in (("arc", "arc_challenge"), ("mmlu-redux", "mmlu_redux"), ("gsm8k", "gsm8k")):
        subjects = ["all"] if name == "mmlu-redux" else None
        for example in load(name, SHARED / folder, subjects=subjects).examples:
            text = user_message(name, example)
            lines = text.split("\n")
            assert text == text.strip() and lines[-1] in (CHOICE, MATH)
            if example.choices:
                tail = [f"{letter}. {choice}" for letter, choice in zip("ABCDE", example.choices, strict=False)]
                head, options = text.removesuffix(f"\n{CHOICE}").split(f"\n{tail[0]}", 1)
                assert head == f"Question: {example.question.strip(chr(10))}" and not head.endswith("\n")
                assert tail[0] + options == "\n".join(tail)
