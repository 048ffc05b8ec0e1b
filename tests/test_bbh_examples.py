"""Our worked BBH examples: in form, right where a program can tell, and none of them taken from the benchmark."""

import json
import re
from collections import Counter
from datetime import date, timedelta
from itertools import permutations
from pathlib import Path

import pytest

from data.prompts import load_shots
from data.subjects import BBH_TARGETS

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
ORDINALS = {"second": 2, "third": 3, "fourth": 4}
BIG_LAST = "rightmost|last|newest|most expensive"
BIG_FIRST = "leftmost|first|oldest|cheapest"


def examples(task: str) -> list[tuple[str, str, str]]:
    """(question, reasoning, answer) of each worked example of a task."""
    shape = r"Q: (.+?)\nA: Let's think step by step\.\n(.+?) So the answer is (.+)\."
    _, *blocks = load_shots([task])[task].split("\n\n")
    return [re.fullmatch(shape, block, re.DOTALL).groups() for block in blocks]


def chosen(question: str, answer: str) -> str:
    """The text of the option a letter stands for."""
    return re.search(rf"^{re.escape(answer)} (.+)$", question, re.MULTILINE)[1]


@pytest.mark.parametrize("task", BBH_TARGETS)
def test_form(task):
    shots = load_shots([task])[task]
    assert not re.search(r"[ \t]$", shots, re.MULTILINE) and "canary" not in shots.lower()
    assert not shots.split("\n\n")[0].startswith("Q:"), "a line that says what the task is comes first"
    found = examples(task)
    assert len(found) == 3
    answers = [answer for _, _, answer in found]
    assert all(re.fullmatch(BBH_TARGETS[task], answer) for answer in answers)
    assert len(set(answers)) > 1, "one answer three times would teach the answer, not the task"
    for question, _, answer in found:
        if answer.startswith("("):
            options = re.findall(r"^(\([A-Z]\)) (.+)$", question, re.MULTILINE)
            letters, texts = zip(*options, strict=True)
            assert letters == tuple(f"({chr(65 + i)})" for i in range(len(letters))) and answer in letters
            assert len(set(texts)) == len(texts)


def test_boolean_expressions():
    for question, _, answer in examples("boolean_expressions"):
        assert str(eval(question.removesuffix(" is"))) == answer


def test_multistep_arithmetic():
    for question, reasoning, answer in examples("multistep_arithmetic_two"):
        assert str(eval(question.removesuffix(" ="))) == answer
        for name in "AB":  # each line of the reasoning is a chain of equal values
            chain = re.search(rf"^{name} = (.+)\.$", reasoning, re.MULTILINE)[1]
            assert len({eval(part) for part in chain.split(" = ")}) == 1


def test_word_sorting():
    for question, _, answer in examples("word_sorting"):
        assert sorted(question.split("List: ")[1].split()) == answer.split()


def test_dyck_languages():
    for question, _, answer in examples("dyck_languages"):
        text = (question.split("Input: ")[1] + answer).replace(" ", "")
        while (shorter := re.sub(r"\(\)|\[\]|\{\}|<>", "", text)) != text:
            text = shorter
        assert text == ""


def test_date_understanding():
    days = [
        date(2011, 2, 26) + timedelta(weeks=1),
        date(1997, 9, 30) + timedelta(days=1) - timedelta(weeks=1),
        date(2014 + 10, 8, 31) + timedelta(days=1),
    ]
    for (question, _, answer), day in zip(examples("date_understanding"), days, strict=True):
        assert chosen(question, answer) == day.strftime("%m/%d/%Y")


def test_navigate():
    for question, _, answer in examples("navigate"):
        place, heading = 0j, 1j
        for step in question.split("? ")[1].split("\n")[0].rstrip(".").split(". "):
            turns = {"left": 1j, "right": -1j, "around": -1, "forward": 1, "backward": -1}
            if step.startswith("Turn"):
                heading *= turns[step.split()[1]]
            elif step != "Always face forward":
                _, count, _, *sideways = step.split()
                place += int(count) * heading * (turns[sideways[0]] if sideways else 1)
        assert ("Yes" if place == 0 else "No") == answer


def test_web_of_lies():
    for question, _, answer in examples("web_of_lies"):
        first, *claims, asked = re.split(r"[.?] ?", question.removeprefix("Question: "))[:-1]
        honest = {first.split()[0]: "truth" in first}
        for claim in claims:
            speaker, about, word = re.fullmatch(r"(\w+) says (\w+) (.+)", claim).groups()
            honest[speaker] = honest[about] == ("truth" in word)
        assert ("Yes" if honest[asked.split()[1]] else "No") == answer


@pytest.mark.parametrize("size", ["three", "five", "seven"])
def test_tracking_shuffled_objects(size):
    for question, reasoning, answer in examples(f"tracking_shuffled_objects_{size}_objects"):
        start, swaps = question.split(": ", 1)[1].split(".\n")
        owns = dict(re.findall(r"(\w+) (?:has an?|is dancing with|gets|is playing) (.+?)(?:,|$)", start))
        assert len(owns) == {"three": 3, "five": 5, "seven": 7}[size]
        for a, b in re.findall(r"(\w+) and (\w+) (?:swap|switch|trade)", swaps):
            owns[a], owns[b] = owns[b], owns[a]
        who = re.search(r"At the end of the \w+, (\w+) ", question)[1]
        assert chosen(question, answer) == owns[who] and f"At the end {who}" in reasoning


def place_of(words: str, size: int) -> int:
    """The place, 1 to size, that "leftmost", "second from the right", "third-cheapest" ... name."""
    count = next((n for word, n in ORDINALS.items() if words.startswith(word)), 1)
    if re.search(rf"(right|{BIG_LAST})$", words):
        return size + 1 - count
    assert re.search(rf"(left|{BIG_FIRST}|second)$", words), words
    return count


def holds(statement: str, order: dict[str, int]) -> bool:
    """Whether a statement of the puzzle is true when each thing stands at this place."""
    before = "left of|above|older than|less expensive than"
    after = "right of|below|newer than|more expensive than"
    pair = rf"(?:The )?(.+?) (?:is|are|finished)(?: to the)? ({before}|{after}) (?:the )?(.+)"
    if match := re.fullmatch(pair, statement):
        one, relation, other = match.groups()
        return (order[one] < order[other]) == bool(re.fullmatch(before, relation))
    thing, place = re.fullmatch(r"(?:The )?(.+?) (?:(?:is|are) the|finished) (.+)", statement).groups()
    return order[thing] == place_of(place, len(order))


@pytest.mark.parametrize("size", ["three", "five", "seven"])
def test_logical_deduction(size):
    for question, _, answer in examples(f"logical_deduction_{size}_objects"):
        story = question.split("within each paragraph. ")[1].split("\n")[0]
        intro, *statements = story.rstrip(".").split(". ")
        things = re.sub(r"\b(an?|and) ", "", intro.split(": ")[1]).split(", ")
        assert len(things) == {"three": 3, "five": 5, "seven": 7}[size]
        orders = (dict(zip(things, places, strict=True)) for places in permutations(range(1, len(things) + 1)))
        orders = [order for order in orders if all(holds(statement, order) for statement in statements)]
        assert len(orders) == 1, "the statements fix one order"
        options = re.findall(r"^(\([A-Z]\)) (.+)$", question, re.MULTILINE)
        assert [letter for letter, text in options if holds(text, orders[0])] == [answer]


def test_temporal_sequences():
    def hour(text: str) -> int:
        return int(text[:-2]) % 12 + 12 * text.endswith("pm")

    for question, _, answer in examples("temporal_sequences"):
        wake = hour(re.search(r"woke up at (\w+)\.", question)[1])
        close = hour(re.search(r"closed after (\w+)\.", question)[1])
        spans = [tuple(map(hour, span)) for span in re.findall(r"from (\w+) to (\w+)\.", question)]
        busy = {h for start, end in spans for h in range(start, end)}
        start, end = map(hour, chosen(question, answer).split(" to "))
        assert set(range(wake, close)) - busy == set(range(start, end))


def test_object_counting():
    kinds = ["goat pigeons horse lizard", "mango figs limes kiwi melons", "banjo desks kettle stools"]
    numbers = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4}
    for (question, _, answer), kind in zip(examples("object_counting"), kinds, strict=True):
        things = re.sub(r"I have |and ", "", question.split(".")[0]).split(", ")
        count = sum(numbers[n] for n, thing in map(str.split, things) if thing in kind.split())
        assert str(count) == answer


def test_geometric_shapes():
    """Straight shapes: the number of sides of the closed outline; the sector: two radii and an arc."""
    for question, _, answer in examples("geometric_shapes"):
        path = re.search(r'd="(.+?)"', question)[1]
        shape = chosen(question, answer)
        sides = path.count("L")
        assert (sides, path.count("A")) == {"hexagon": (6, 0), "sector": (2, 1), "triangle": (3, 0)}[shape]
        points = re.findall(r"([\d.]+,[\d.]+)(?= [LMA]|$)", path)
        assert points[0] == points[-1]
        if shape == "sector":
            centre, one, two = (complex(*map(float, point.split(","))) for point in points[:3])
            assert abs(one - centre) == abs(two - centre) == float(re.search(r"A ([\d.]+)", path)[1])


def test_penguins_and_colors():
    """The computable answers, recomputed by hand-written queries."""
    table = {"Otto": (4, 55, 12), "Petra": (10, 75, 16), "Quinn": (6, 68, 9), "Rosa": (3, 62, 13)}
    more = {**table, "Tilda": (12, 80, 18)}
    expected = [
        min(table, key=lambda name: table[name][2]),
        str(sum(age > 5 and height > 70 for age, height, _ in more.values())),
        str(sum(age for name, (age, _, _) in table.items() if name != "Petra")),
    ]
    found = examples("penguins_in_a_table")
    assert [chosen(question, answer) for question, _, answer in found] == expected
    rows = " ".join(f"{name}, {age}, {height}, {weight}" for name, (age, height, weight) in table.items())
    assert all(rows in question for question, _, _ in found)
    colors = examples("reasoning_about_colored_objects")
    assert [chosen(question, answer) for question, _, answer in colors] == ["gold", "two", "one"]


def content(text: str, common: set[str] = frozenset()) -> set[str]:
    return set(re.findall(r"[\w'/.-]*\w", text.lower())) - common


@pytest.mark.skipif(not SHARED.is_dir(), reason="the benchmark's rows are not in ../shared/data")
@pytest.mark.parametrize("task", BBH_TARGETS)
def test_nothing_is_taken_from_the_benchmark(task):
    """No question of ours contains a row or an official example, is part of one, or shares its content.

    Content is the words that a task's rows do not share: used in less than a tenth of them.
    """
    lines = (SHARED / "bbh" / f"{task}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line)["input"] for line in lines]
    official = (SHARED / "bbh_cot" / f"{task}.txt").read_text(encoding="utf-8")
    rows += re.findall(r"^Q: (.+?)\nA: ", official, re.DOTALL | re.MULTILINE)
    uses = Counter(word for row in rows for word in content(row))
    common = {word for word, count in uses.items() if count > len(rows) / 10}
    for question, _, _ in examples(task):
        ours = content(question, common)
        for row in rows:
            assert question not in row and row not in question
            theirs = content(row, common)
            shared = ours & theirs
            assert len(shared) < 4 or len(shared) <= min(len(ours), len(theirs)) / 2, (shared, row)
