"""The grader: rows of cases, every gold of every local benchmark, and text that nobody should have written."""

import json
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from random import Random

import pytest

from data.load import load
from eval.grade import score
from eval.kinds import PAIRS
from eval.math_worker import verify
from eval.score import LineError, graded
from tests.grader_rows import (
    BBH,
    CUT_OFF_MATH,
    CUT_OFF_NUMBERS,
    CUT_OFF_OPTIONS,
    MATH,
    NUMBERS,
    OPTIONS,
    ROCKS,
    TEXTS,
)

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"
CASES = SHARED / "scoring" / "cases.jsonl"
needs_data = pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="the benchmarks' files are not here")

# what must not be credited, though a lenient grader would
FALSE_FRIENDS = [
    ("52_9", "52_8"), ("3r^2", "3R^2"), ("\\{2,5\\}", "(2,5)"), ("4\\sqrt(2)", "4"),
    ("\\frac{1}{2^{98}}", "\\frac{1}{2^{99}}"), ("10", "0.1"),
    ("0.333333", "\\frac{1}{3}"), ("(3,2)", "(2,3)"), ("[2,5]", "(2,5)"), ("3", "3,5"), ("1.41421356", "\\sqrt{2}"),
    ("x<3", "(-\\infty,3)"), ("y=2x", "y=2x+1"), ("52", "52_8"), ("-i", "i"), ("\\text{west}", "\\text{east}"),
]  # fmt: skip


def grade(dataset: str, options, response: str, gold: str, **more):
    """A row's score; a BBH task stands for bbh."""
    known = dataset in ("gsm8k", "math500", "arc", "mmlu-redux")
    return score(dataset if known else "bbh", response, gold, task=None if known else dataset, choices=options, **more)


def check(row, answer, golds, grade_against):
    """A response is right for the gold it gives, wrong for all others, and None exactly where it gives none."""
    for gold in golds:
        got = grade_against(gold)
        assert (got.prediction is None) == (answer is None), (row, got)
        assert got.correct == (gold == answer), (row, gold, got)


@pytest.mark.parametrize("rows, truncated", [(NUMBERS, False), (CUT_OFF_NUMBERS, True)])
def test_numbers(rows, truncated):
    for response, number in rows:
        golds = {number or "18", "5", "6", "31"}
        check(response, number, golds, lambda gold, r=response: score("gsm8k", r, gold, truncated=truncated))


@pytest.mark.parametrize("rows, truncated", [(OPTIONS, False), (CUT_OFF_OPTIONS, True)])
@pytest.mark.parametrize("dataset", ["arc", "mmlu-redux"])
def test_options(dataset, rows, truncated):
    for response, letter in rows:
        more = {"choices": ROCKS, "truncated": truncated}
        check(response, letter, "ABCD", lambda gold, r=response, m=more: score(dataset, r, gold, **m))


def test_options_that_contain_one_another():
    for texts, response, letter in TEXTS:
        check(response, letter, "ABCD", lambda gold, r=response, t=texts: score("mmlu-redux", r, gold, choices=t))


def test_bbh_kinds():
    for task, response, answer in BBH:
        others = PAIRS.get(task) or (
            ["(A)", "(C)"] if answer is None or answer.startswith("(") else ["7", "b a", ") ("]
        )
        golds = {*(gold for gold in others if gold.casefold() != (answer or "").casefold()), answer or others[0]}
        check(response, answer, golds, lambda gold, r=response, t=task: score("bbh", r, gold, task=t))


@pytest.mark.parametrize("rows, truncated", [(MATH, False), (CUT_OFF_MATH, True)])
def test_math(rows, truncated):
    for response, gold, right in rows:
        assert score("math500", response, gold, truncated=truncated).correct == right, (response, gold)


@pytest.mark.parametrize("gold", ["B", "2", "(B)"])
def test_arc_golds_are_letters_or_places(gold):
    assert score("arc_challenge", "The answer is (B).", gold, choices=ROCKS).correct


@pytest.mark.parametrize("prediction, gold", FALSE_FRIENDS)
def test_false_friends_are_wrong(prediction, gold):
    assert not score("math500", f"So it is $\\boxed{{{prediction}}}$.", gold).correct


def test_shared_cases():
    """Each is a law."""
    if not CASES.is_file():
        pytest.skip("the scoring cases are not here")
    rows = [json.loads(line) for line in CASES.read_text().splitlines()]
    results = graded(json.dumps(row) for row in rows)
    wrong = [
        row["id"]
        for row, got in zip(rows, results, strict=True)
        if (got["correct"], got["prediction"] is None) != (row["correct"], row["expected_pred"] is None)
    ]
    assert len(rows) > 150 and not wrong


@cache
def examples(name: str, path: str):
    subjects = ["all"] if name in ("bbh", "mmlu-redux") else None
    return load(name, SHARED / "data" / path, subjects=subjects).examples


def prompted(name: str, example, answer: str) -> str:
    """An answer in the form that the prompt asks for."""
    if name in ("gsm8k", "math500"):
        return f"We add them up.\n\nThe final answer is $\\boxed{{{answer}}}$."
    if name == "bbh":
        return f"Let's think step by step. We look at each. So the answer is {answer}."
    return f"Some reasoning about it. The answer is ({answer})"


def another(name: str, example) -> str:
    """A wrong answer of the same kind."""
    gold = example.gold
    if name in ("arc", "mmlu-redux"):
        return "B" if gold == "A" else "A"
    if name == "bbh" and gold.startswith("(") and len(gold) == 3:
        return "(B)" if gold == "(A)" else "(A)"
    if name == "bbh" and example.subject in PAIRS:
        yes, no = PAIRS[example.subject]
        return no if gold.casefold() == yes.casefold() else yes
    if name == "bbh" and example.subject == "word_sorting":
        first, second, *rest = gold.split()
        return " ".join([second, first, *rest])
    if name == "bbh" and example.subject == "dyck_languages":
        return f"{gold} ]"
    return "123456789" if name != "bbh" else "98765"


FILES = [
    ("gsm8k", "gsm8k/main_test.jsonl"), ("math500", "math500/test.jsonl"), ("arc", "arc_challenge/test.jsonl"),
    ("bbh", "bbh"), ("mmlu-redux", "mmlu_redux"),
]  # fmt: skip


@needs_data
@pytest.mark.parametrize("name, path", FILES)
def test_every_gold_is_right_and_another_answer_wrong(name, path):
    for example in examples(name, path):
        more = {"task": example.subject, "choices": example.choices}
        got = score(name, prompted(name, example, example.gold), example.gold, **more)
        assert got.correct, (example.id, example.gold, got)
        other = another(name, example)
        got = score(name, prompted(name, example, other), example.gold, **more)
        assert not got.correct, (example.id, example.gold, got)


JUNK = [
    "9" * 100_000, "{" * 10_000, "\\boxed{" * 3_000, "$" * 50_000, "(" * 50_000, "answer is " * 5_000, "#### " * 10_000,
    "\\boxed{" + "2^{" * 400 + "2" + "}" * 400 + "}", "\\boxed{9^{9^{9^{9^{9}}}}}", "\\frac" * 5_000, "A" * 100_000,
    "the answer is " + "x" * 100_000, "- " * 50_000, "\n" * 50_000, "**" * 20_000,
    "\\boxed{" + ",".join(["1"] * 5_000) + "}",
    "Q: " * 10_000, "<think>" * 5_000, "\\text{" * 5_000, "\\boxed{\\sqrt" * 500, "1,000" * 20_000, "\u0000\ud800", "",
]  # fmt: skip


JUNK_GOLDS = {
    "gsm8k": "18", "math500": "\\frac{3}{7}", "arc": "B", "word_sorting": "b c", "dyck_languages": "] )",
    "navigate": "No", "object_counting": "8",
}  # fmt: skip


@pytest.mark.parametrize("dataset, gold", JUNK_GOLDS.items())
def test_junk_is_not_credited(dataset, gold):
    for junk in JUNK:
        assert not grade(dataset, ROCKS if dataset == "arc" else (), junk, gold).correct, junk[:40]


@pytest.mark.parametrize("seed", range(30))
def test_random_text_never_raises(seed):
    rng = Random(seed)
    pieces = [
        "\\boxed{",
        "}",
        "{",
        "answer is ",
        "#### ",
        "$",
        "\\frac",
        "^",
        "(",
        ")",
        "A",
        "1",
        ".",
        "\n",
        "漢",
        "\u0301",
        " or ",
        "=",
    ]
    text = "".join(rng.choice(pieces) if rng.random() < 0.8 else chr(rng.randrange(0x20, 0x2FFF)) for _ in range(300))
    for dataset in ("gsm8k", "math500", "arc", "word_sorting", "dyck_languages", "navigate", "date_understanding"):
        for truncated in (False, True):
            grade(dataset, ROCKS if dataset == "arc" else (), text, "17", truncated=truncated)


def test_the_worker_works_off_the_main_thread_and_survives_a_hang():
    results = []
    thread = threading.Thread(target=lambda: results.append(verify(gold="2\\sqrt{2}", prediction="\\sqrt{8}")))
    thread.start()
    thread.join()
    results.append(verify(gold="9^{9^{9^{9^{9}}}}", prediction="8^{8^{8^{8^{8}}}}"))
    results.append(verify(gold="2\\sqrt{2}", prediction="\\sqrt{8}"))
    assert results == [True, False, True]


@pytest.mark.parametrize(
    "line, told",
    [
        ("nonsense", "line 2: not JSON"),
        (b"\xff\xfe{", "line 2: not UTF-8|line 2: not JSON"),
        ("[" * 100_000, "line 2: nested"),
        ('{"dataset": "arc", "response": "", "gold": "BC"}', "no option"),
        ('{"dataset": "arc", "response": "", "gold": "B", "choices": "xy"}', "choices"),
        ('{"dataset": "bbh", "task": "juggling", "response": "", "gold": "1"}', "juggling"),
        ("[1]", "line 2: not an object"),
        ('{"dataset": "gsm8k", "gold": "1"}', "line 2: response"),
        ('{"dataset": "gsm9k", "response": "", "gold": "1"}', "gsm9k"),
        ('{"dataset": "bbh", "response": "", "gold": "1"}', "task"),
    ],
)
def test_a_line_that_cannot_be_graded_is_named(line, told):
    good = '{"dataset": "gsm8k", "response": "#### 1", "gold": "1", "mine": 3}'
    results = graded([good, line])
    assert next(results) == {"dataset": "gsm8k", "response": "#### 1", "gold": "1", "mine": 3} | {
        "prediction": "1",
        "correct": True,
    }
    with pytest.raises(LineError, match=told):
        next(results)


def test_the_program_grades_stdin():
    row = '{"dataset": "arc_challenge", "response": "The answer is (B)\\ud800", "gold": "2", "choices": ["x", "y"]}'
    lines = f"{row}\nbad\n"
    done = subprocess.run([sys.executable, "-m", "eval.score"], input=lines, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "line 2" in done.stderr
    assert json.loads(done.stdout)["correct"]
