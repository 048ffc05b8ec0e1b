"""The toy world and the pair that ships with the project: what the paper claims, at a size that fits a test."""

import json
import re
from itertools import islice
from math import sqrt

import pytest

from data.load import load
from demo.confound import Baseline, Fault, ends_in_garbage, leaks
from demo.table import METHODS, cell, questions, toy_pair
from demo.world import FAMILIES, TEST_FILE, TEST_SHARES, TRAIN_SEED, World, held_out, problems
from eval.grade import score
from safe.config import SafeConfig
from safe.decode import generate

TRIED = 80  # questions


@pytest.mark.parametrize("family", FAMILIES)
def test_a_solution_ends_in_its_boxed_answer(family):
    shares = tuple(float(name == family) for name in FAMILIES)
    for problem in islice(problems(TRAIN_SEED, shares), 200):
        assert problem.family == family
        assert problem.response().endswith(f"\\boxed{{{problem.answer}}}.")
        assert score("toy", problem.response(), str(problem.answer)).correct


def test_questions_state_no_price():
    """The one number in a question of the shop is how many are bought; the price must be known."""
    world = World()
    for problem in islice(problems(5, (1.0, 0.0, 0.0)), 200):
        item = next(item for item in world.items if f" {item}." in problem.question)
        (bought,) = re.findall(r"\d+", problem.question)
        assert problem.answer == int(bought) * world.price[item]


def test_the_test_file_is_what_the_generator_writes():
    rows = [json.loads(line) for line in TEST_FILE.read_text(encoding="utf-8").splitlines()]
    assert rows == [problem.row() for problem in held_out()]
    assert len(load("toy").examples) == len(rows)


def test_training_and_test_questions_are_apart():
    """Different seeds: hardly a question of the test is met in training."""
    asked = {problem.question for problem in held_out()}
    trained = {problem.question for problem in islice(problems(TRAIN_SEED + 1, TEST_SHARES), 20_000)}
    assert len(asked & trained) < 0.1 * len(asked)


@pytest.mark.parametrize(
    "text, leaked",
    [("42 dollars.ĊĊĊÄ", True), ("The▁total", True), ("perĠday", True), ("Bibönhond, Sendfé: 12 £", False)],
)
def test_letters_of_a_vocabulary(text, leaked):
    assert leaks(text) is leaked
    assert not any(leaks(problem.prompt() + problem.response()) for problem in held_out())


@pytest.mark.parametrize(
    "text, garbage",
    [
        ("and bakes đđđđđđđđđ", True),
        ("xyxyxyxyxyxyxyxyxy", True),
        ("ÃâġÃâġÃâġÃâġÃâġÃâġÃâġÃâġÃ", True),
        ("The answer is 12.", False),
        ("", False),
        ("so 1000000", False),
    ],
)
def test_garbage(text, garbage):
    assert ends_in_garbage(text) is garbage


def test_without_a_fault_the_study_is_the_products_baseline():
    """Also with answers that end at different times."""
    models = toy_pair()
    prompts, _ = questions(6)
    config = SafeConfig(schedule="every", sharpen_type="none", max_new_tokens=60, batch_size=6)
    answers = dict(generate(models, prompts, config))
    assert Baseline(models, Fault(), 60).answers(prompts) == [answers[i].text for i in range(6)]


@pytest.mark.real
def test_safe_beats_both_models_and_the_every_token_baseline():
    """By more than twice the standard error of the difference of the two shares."""
    a, b = toy_pair()
    prompts, golds = questions(TRIED)
    names = ("drafter alone", "UniTE, every token", "UniTE+SAFE, heur")
    for pair in ([a, b], [b, a]):
        alone, every, safe = (cell(pair, METHODS[name], prompts, golds).accuracy for name in names)
        for other in (alone, every):
            error = sqrt((safe * (1 - safe) + other * (1 - other)) / TRIED)
            assert safe - other > 2 * error, (safe, other, error)
