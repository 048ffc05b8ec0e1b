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

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"
CASES = SHARED / "scoring" / "cases.jsonl"
needs_data = pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="the benchmarks' files are not here")

# dataset (bbh: its task), options, response, gold, prediction; right exactly where gold and prediction agree
ROCKS = ("granite", "marble", "slate", "basalt")
ROWS = [
    # numbers
    ("gsm8k", (), "It is 3 * 6 = 18.\n#### 18", "18", "18"),
    ("gsm8k", (), "So the total is $1,234.00.", "1234", "1234.00"),
    ("gsm8k", (), "The answer is 5. Wait, I forgot one. The answer is 6.", "6", "6"),
    ("gsm8k", (), "The answer is not 5. The answer is 7.", "7", "7"),
    ("gsm8k", (), "The answer is 5 or 6.", "5", None),
    ("gsm8k", (), "Answer: 3 + 4 = 7 apples", "7", "7"),
    ("gsm8k", (), "**Final Answer:** €1.200.000", "1200000", "1.200"),
    ("gsm8k", (), "\\boxed{1\\,450\\,000}", "1450000", "1450000"),
    ("gsm8k", (), "\\boxed{\\text{18 dollars}}", "18", "18"),
    ("gsm8k", (), "#### -3", "3", "-3"),
    ("gsm8k", (), "The answer is 7.\n\nQ: How many more?\nThe answer is 9.", "7", "7"),
    ("gsm8k", (), "\\boxed{12}\n\nQuestion: And then?\n\\boxed{13}", "13", "12"),
    ("gsm8k", (), "<think>The answer is 4.</think>\\boxed{5}", "5", "5"),
    ("gsm8k", (), "The answer is \\boxed{", "4", None),
    ("gsm8k", (), "He needs 50% of 8.\n#### 4 (half of it)", "4", "4"),
    # options
    ("arc", ROCKS, "The answer is (C)", "C", "C"),
    ("arc", ROCKS, "The answer is (E)", "C", None),
    ("arc", ROCKS, "The answer is not (B). The answer is (C).", "C", "C"),
    ("arc", ROCKS, "the answer is **(B) marble**.", "B", "B"),
    ("arc", ROCKS, "\\boxed{\\text{(D)}}", "D", "D"),
    ("arc", ROCKS, "The answer is (A) or (B).", "A", None),
    ("arc", ROCKS, "Option B is correct.", "B", "B"),
    ("arc", ROCKS, "Option B is not correct. Option D is the correct answer.", "D", "D"),
    ("arc", ROCKS, "C", "C", "C"),
    ("arc", ROCKS, "A rock that floats would be pumice.", "A", None),
    ("arc", ROCKS, "It has to be basalt.", "D", "D"),
    ("arc", ROCKS, "The answer is slate.", "C", "C"),
    ("arc", ROCKS, "The answer is (B).\n\nQuestion: Which is soft?\nThe answer is (C).", "B", "B"),
    # BBH
    ("date_understanding", (), "So the answer is (D).", "(D)", "(D)"),
    ("boolean_expressions", (), "So the answer is True.", "True", "True"),
    ("boolean_expressions", (), "True and False is False.", "False", None),
    ("navigate", (), "The answer is no.", "No", "No"),
    ("formal_fallacies", (), "So the answer is not valid.", "invalid", "invalid"),
    ("sports_understanding", (), "So the sentence is plausible. So the answer is yes.", "yes", "yes"),
    ("web_of_lies", (), "So the answer is Yes or No.", "No", None),
    ("object_counting", (), "There are twelve of them.", "12", "12"),
    ("multistep_arithmetic_two", (), "So the answer is -50.", "-50", "-50"),
    ("word_sorting", (), "So the answer is:\n1. apple\n2. bear\n3. cat", "apple bear cat", "apple bear cat"),
    ("word_sorting", (), "So the answer is bear apple cat.", "apple bear cat", "bear apple cat"),
    ("dyck_languages", (), "So the answer is ) } ].", ") } ]", ") } ]"),
    # MATH
    ("math500", (), "\\boxed{\\dfrac{1}{2}}", "\\frac12", "\\dfrac{1}{2}"),
    ("math500", (), "\\boxed{.5}", "\\frac{1}{2}", ".5"),
    ("math500", (), "The answer is $x=3$.", "3", "x=3"),
    ("math500", (), "\\boxed{2,1}", "1,2", "2,1"),
    ("math500", (), "\\boxed{\\sqrt{8}}", "2\\sqrt{2}", "\\sqrt{8}"),
    ("math500", (), "\\boxed{90^\\circ}", "90", "90^\\circ"),
    ("math500", (), "\\boxed{\\frac{\\sqrt{2}}{2}}", "\\frac{1}{\\sqrt{2}}", "\\frac{\\sqrt{2}}{2}"),
    ("math500", (), "\\boxed{(x+1)^2}", "x^2+2x+1", "(x+1)^2"),
]  # fmt: skip
# what must not be credited, though a lenient grader would
FALSE_FRIENDS = [
    ("52_9", "52_8"), ("3r^2", "3R^2"), ("\\{2,5\\}", "(2,5)"), ("4\\sqrt(2)", "4"),
    ("\\frac{1}{2^{98}}", "\\frac{1}{2^{99}}"), ("10", "0.1"),
    ("0.333333", "\\frac{1}{3}"), ("(3,2)", "(2,3)"), ("[2,5]", "(2,5)"), ("3", "3,5"), ("1.41421356", "\\sqrt{2}"),
    ("x<3", "(-\\infty,3)"), ("y=2x", "y=2x+1"), ("52", "52_8"), ("-i", "i"), ("\\text{west}", "\\text{east}"),
]  # fmt: skip
NUMBERS = ("gsm8k", "toy", "object_counting", "multistep_arithmetic_two")


def grade(dataset: str, options, response: str, gold: str, **more):
    """A row's score; a BBH task stands for bbh."""
    known = dataset in ("gsm8k", "math500", "arc", "mmlu-redux")
    return score(dataset if known else "bbh", response, gold, task=None if known else dataset, choices=options, **more)


@pytest.mark.parametrize("dataset, options, response, gold, prediction", ROWS)
def test_rows(dataset, options, response, gold, prediction):
    got = grade(dataset, options, response, gold)
    assert got.prediction == prediction
    if dataset != "math500" and dataset not in NUMBERS:
        assert got.correct == (prediction == gold)
    elif dataset == "math500":
        assert got.correct


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
    lines = '{"dataset": "arc_challenge", "response": "The answer is (B)", "gold": "2", "choices": ["x", "y"]}\nbad\n'
    done = subprocess.run([sys.executable, "-m", "eval.score"], input=lines, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "line 2" in done.stderr
    assert json.loads(done.stdout)["correct"]
