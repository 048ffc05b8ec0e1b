"""The user messages of the experiment (Figures 6 and 7), to the letter."""

from collections.abc import Iterable
from pathlib import Path
from string import ascii_uppercase

from data.example import DataError, Example

CHOICE = (
    "Provide your step-by-step reasoning first, and then print "
    '"The answer is (X)" where X is the answer choice (one capital letter), at the end of your response.'
)
MATH = r"Please reason step by step, and put your final answer within \boxed{}."
BBH = "A: Let's think step by step."
EXAMPLES = Path(__file__).resolve().parent / "bbh_examples"


def user_message(name: str, example: Example, shots: str | None = None) -> str:
    """What the models are asked; ``shots`` are the worked examples of the example's task, for bbh alone.

    Lines are separated by one newline and nothing stands before or after: the newline that ends some of MMLU's
    questions goes, other blanks of the data stay.
    """
    question = example.question.strip("\r\n")
    if name == "bbh":
        assert shots is not None, "bbh is asked with worked examples"
        return f"{shots}\n\nQ: {question}\n{BBH}"
    if name in ("arc", "mmlu-redux"):
        options = [f"{letter}. {text}" for letter, text in zip(ascii_uppercase, example.choices, strict=False)]
        return "\n".join([f"Question: {question}", *options, CHOICE])
    assert name in ("gsm8k", "math500", "toy"), name
    return f"{question}\n{MATH}"


def load_shots(tasks: Iterable[str], cot_prompts_dir: str | Path | None = None) -> dict[str, str]:
    """The worked examples that precede a question of each BBH task.

    Read from ``<task>.txt`` in the folder, in the form of the benchmark's own files (the canary and the dashes on
    their first lines are dropped), or by default from the examples written for this project.
    Raises DataError for a file that is missing or cannot be used.
    """
    folder = EXAMPLES if cot_prompts_dir is None else Path(cot_prompts_dir)
    return {task: _shots(folder / f"{task}.txt") for task in tasks}


def _shots(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "not UTF-8"
        raise DataError(f"cannot read {path}: {cause}; --cot_prompts needs a <task>.txt for each task") from error
    if lines and "canary" in lines[0].lower():
        lines = lines[2:] if lines[1:] and set(lines[1].strip()) == {"-"} else lines[1:]
    shots = "\n".join(lines).strip()
    if not shots:
        raise DataError(f"{path} is empty; --cot_prompts needs worked examples for each task")
    return shots
