"""A small world of made-up words and facts, and word problems about it with worked solutions.

`python -m demo.world` writes the test questions. A question never states the facts it needs (what an item costs, how
long a road is): they must be known. Three families ask for them:

    shop    a price, and a product     (model a is trained on these)
    road    a road, and a sum          (model b is trained on these)
    trade   a price and a road, and a sum   (both are weak here)

Every model sees a few problems of the other families: it knows how their solutions go, but is unsure of their facts.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

TEST_SEED, TRAIN_SEED, WORLD_SEED = 7, 1_000, 3
TEST_QUESTIONS = 300
TEST_FILE = Path(__file__).parent / "toy_test.jsonl"
FAMILIES = ("shop", "road", "trade")
TEST_SHARES = (0.4, 0.4, 0.2)
PROMPT_END = "\nPlease reason step by step, and put your final answer within \\boxed{}."


@dataclass(frozen=True)
class Problem:
    """A question, its worked solution (which ends in the boxed answer), and the answer."""

    family: str
    question: str
    solution: str
    answer: int

    def row(self) -> dict[str, str]:
        """The problem with GSM8K's columns."""
        return {"question": self.question, "answer": f"{self.solution}\n#### {self.answer}"}

    def prompt(self) -> str:
        return self.question + PROMPT_END

    def response(self) -> str:
        """What a model should write behind the prompt."""
        return f" {self.solution}"


class World:
    """The words, and the facts that no question states."""

    def __init__(self, seed: int = WORLD_SEED):
        rng = Random(seed)
        words = _words(rng, 280)
        self.people = [word.capitalize() for word in words[:60]]
        self.towns = [word.capitalize() for word in words[60:140]]
        self.items = words[140:220]
        self.goods = words[220:]
        self.price = {item: rng.randint(2, 9) for item in self.items}
        self.road = {town: rng.randint(11, 39) for town in self.towns}

    def problem(self, family: str, rng: Random) -> Problem:
        """One problem of a family."""
        return getattr(self, f"_{family}")(rng)

    def _shop(self, rng: Random) -> Problem:
        person, town = rng.choice(self.people), rng.choice(self.towns)
        item, n = rng.choice(self.items), rng.randint(2, 9)
        price, total = self.price[item], n * self.price[item]
        question = f"{person} goes to the market of {town} and buys {n} {item}. How many coins does {person} pay?"
        solution = (
            f"{person} is at the market of {town}. One {item} costs {price} coins there. {person} buys {n} {item}, "
            f"so {person} pays {n} * {price} = {total} coins for the {item}. The answer is \\boxed{{{total}}}."
        )
        return Problem("shop", question, solution, total)

    def _road(self, rng: Random) -> Problem:
        person, town = rng.choice(self.people), rng.choice(self.towns)
        good, n = rng.choice(self.goods), rng.randint(2, 9)
        road, total = self.road[town], n + self.road[town]
        question = f"{person} carries {good} on the road to {town} and then {n} miles further. How far is that?"
        solution = (
            f"{person} carries {good} to {town}. The road to {town} is {road} miles long. Then {person} goes on for "
            f"{n} miles with the {good}, so {person} goes {road} + {n} = {total} miles. "
            f"The answer is \\boxed{{{total}}}."
        )
        return Problem("road", question, solution, total)

    def _trade(self, rng: Random) -> Problem:
        person, town, item = rng.choice(self.people), rng.choice(self.towns), rng.choice(self.items)
        price, road = self.price[item], self.road[town]
        total = price + road
        question = (
            f"{person} pays a coin for each mile on the road to {town} and buys one {item}. What does {person} pay?"
        )
        solution = (
            f"{person} goes to {town}. The road to {town} is {road} miles long, so {person} pays {road} coins for it. "
            f"One {item} costs {price} coins. {person} pays {road} + {price} = {total} coins. "
            f"The answer is \\boxed{{{total}}}."
        )
        return Problem("trade", question, solution, total)


def problems(seed: int, shares: tuple[float, float, float]) -> Iterator[Problem]:
    """Endless problems, of each family (shop, road, trade) as many as its share says."""
    world, rng = World(), Random(seed)
    while True:
        yield world.problem(rng.choices(FAMILIES, shares)[0], rng)


def held_out(n: int = TEST_QUESTIONS) -> list[Problem]:
    """The test questions, no two alike."""
    found: dict[str, Problem] = {}
    for problem in problems(TEST_SEED, TEST_SHARES):
        found.setdefault(problem.question, problem)
        if len(found) == n:
            return list(found.values())
    raise AssertionError("problems are endless")


def _words(rng: Random, n: int) -> list[str]:
    """Made-up words of 5 to 11 letters, some with accents."""
    heads = [
        "b", "br", "c", "d", "dr", "f", "fl", "g", "gr", "h", "k", "kl", "l", "m", "n", "p", "pr", "r", "s", "st", "t",
        "tr", "v", "w", "z",
    ]  # fmt: skip
    vowels = ["a", "e", "i", "o", "u", "a", "e", "i", "o", "u", "é", "ö", "ai", "ou"]
    tails = ["", "", "n", "r", "l", "s", "m", "t", "nd", "rk"]
    found: dict[str, None] = {}
    while len(found) < n:
        syllables = (
            rng.choice(heads) + rng.choice(vowels) + rng.choice(tails) for _ in range(rng.choice([2, 2, 3, 3]))
        )
        if 5 <= len(word := "".join(syllables)) <= 11:
            found[word] = None
    return list(found)


if __name__ == "__main__":
    with TEST_FILE.open("w", encoding="utf-8") as out:
        for each in held_out():
            out.write(json.dumps(each.row(), ensure_ascii=False) + "\n")
    print(f"{TEST_QUESTIONS} questions in {TEST_FILE}")
