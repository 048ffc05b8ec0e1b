"""Whether a response is right: extraction and comparison by the dataset's kind of answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eval.choices import LETTERS, extract_choice
from eval.kinds import extract_bbh, same_bbh
from eval.math_answers import extract_math
from eval.math_same import same_math
from eval.numbers import extract_number, same_number

DATASETS = {"arc_challenge": "arc", "mmlu_redux": "mmlu-redux"} | {
    name: name for name in ("gsm8k", "math500", "arc", "bbh", "mmlu-redux", "toy")
}


@dataclass(frozen=True)
class Score:
    """prediction: the answer that a careful reader takes from the response; None if it gives none."""

    prediction: str | None
    correct: bool


def score(
    dataset: str,
    response: str,
    gold: str,
    *,
    task: str | None = None,
    choices: Sequence[str] = (),
    truncated: bool = False,
) -> Score:
    """Grade one response.

    Arguments:
        dataset: gsm8k, math500, arc, bbh, mmlu-redux, toy, or another spelling in DATASETS.
        gold: the dataset's answer; for arc a letter or a digit by position.
        task: the BBH task, which decides the kind of answer.
        choices: the option texts by position, where there are any.
        truncated: the response was cut off; then only an explicit statement counts.
    """
    kind = DATASETS[dataset]
    if kind in ("gsm8k", "toy"):
        found, same = extract_number(response, truncated), same_number
    elif kind == "math500":
        found, same = extract_math(response, truncated), same_math
    elif kind == "bbh":
        found = extract_bbh(task, response, gold, choices, truncated)
        return Score(found, found is not None and same_bbh(task, found, gold))
    else:
        found = extract_choice(response, choices, truncated, most=max(len(choices), 5))
        gold = gold.strip(" ()")
        gold = LETTERS[int(gold) - 1] if re.fullmatch("[1-9]", gold) else gold.upper()
        return Score(found, found == gold)
    return Score(found, found is not None and same(found, gold))
