"""Whether an answer is right."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation


@dataclass(frozen=True)
class Score:
    """prediction: the answer a careful reader takes from the response, None if there is none."""

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
    found = re.findall(r"\\boxed\{([^{}]*)\}", response) or re.findall(r"-?\d[\d,]*(?:\.\d+)?", response)
    prediction = found[-1].replace(",", "").strip("$ .") if found and not truncated or "boxed" in response and found else None
    try:
        return Score(prediction, prediction is not None and Decimal(prediction) == Decimal(gold.replace(",", "")))
    except InvalidOperation:
        return Score(prediction, prediction == gold)
