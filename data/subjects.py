"""Names of the BBH tasks and MMLU-Redux subjects, and which of them a run asks by default."""

import difflib
from collections.abc import Sequence

from data.example import DataError

_LETTER_TASKS = (
    "date_understanding",
    "disambiguation_qa",
    "geometric_shapes",
    "hyperbaton",
    "logical_deduction_five_objects",
    "logical_deduction_seven_objects",
    "logical_deduction_three_objects",
    "movie_recommendation",
    "penguins_in_a_table",
    "reasoning_about_colored_objects",
    "ruin_names",
    "salient_translation_error_detection",
    "snarks",
    "temporal_sequences",
    "tracking_shuffled_objects_five_objects",
    "tracking_shuffled_objects_seven_objects",
    "tracking_shuffled_objects_three_objects",
)

# Every task with the form of its targets, as a regular expression for the whole target.
BBH_TARGETS: dict[str, str] = dict(
    sorted(
        {
            **{task: r"\([A-Z]\)" for task in _LETTER_TASKS},
            "boolean_expressions": r"True|False",
            "causal_judgement": r"Yes|No",
            "dyck_languages": r"[\])}>]( [\])}>])*",
            "formal_fallacies": r"valid|invalid",
            "multistep_arithmetic_two": r"-?\d+",
            "navigate": r"Yes|No",
            "object_counting": r"\d+",
            "sports_understanding": r"yes|no",
            "web_of_lies": r"Yes|No",
            "word_sorting": r"\S+( \S+)*",
        }.items()
    )
)

# The paper evaluates 15 of the 27 tasks without naming them in the parts at hand. Taken here: the algorithmic half
# of BBH (Suzgun et al., 2022), which is 15 tasks when the sizes of logical_deduction and tracking_shuffled_objects
# are counted one by one; the other 12 test knowledge of language and the world.
BBH_DEFAULT = (
    "boolean_expressions",
    "dyck_languages",
    "geometric_shapes",
    "logical_deduction_five_objects",
    "logical_deduction_seven_objects",
    "logical_deduction_three_objects",
    "multistep_arithmetic_two",
    "navigate",
    "object_counting",
    "temporal_sequences",
    "tracking_shuffled_objects_five_objects",
    "tracking_shuffled_objects_seven_objects",
    "tracking_shuffled_objects_three_objects",
    "web_of_lies",
    "word_sorting",
)

# The 30 subjects of the first MMLU-Redux, which the paper used.
MMLU_DEFAULT = (
    "anatomy",
    "astronomy",
    "business_ethics",
    "clinical_knowledge",
    "college_chemistry",
    "college_computer_science",
    "college_mathematics",
    "college_medicine",
    "college_physics",
    "conceptual_physics",
    "econometrics",
    "electrical_engineering",
    "formal_logic",
    "global_facts",
    "high_school_chemistry",
    "high_school_geography",
    "high_school_macroeconomics",
    "high_school_mathematics",
    "high_school_physics",
    "high_school_statistics",
    "high_school_us_history",
    "human_aging",
    "logical_fallacies",
    "machine_learning",
    "miscellaneous",
    "philosophy",
    "professional_accounting",
    "professional_law",
    "public_relations",
    "virology",
)

_MMLU_OTHERS = (
    "abstract_algebra",
    "college_biology",
    "computer_security",
    "elementary_mathematics",
    "high_school_biology",
    "high_school_computer_science",
    "high_school_european_history",
    "high_school_government_and_politics",
    "high_school_microeconomics",
    "high_school_psychology",
    "high_school_world_history",
    "human_sexuality",
    "international_law",
    "jurisprudence",
    "management",
    "marketing",
    "medical_genetics",
    "moral_disputes",
    "moral_scenarios",
    "nutrition",
    "prehistory",
    "professional_medicine",
    "professional_psychology",
    "security_studies",
    "sociology",
    "us_foreign_policy",
    "world_religions",
)

ALL: dict[str, tuple[str, ...]] = {
    "bbh": tuple(BBH_TARGETS),
    "mmlu-redux": tuple(sorted(MMLU_DEFAULT + _MMLU_OTHERS)),
}
DEFAULT: dict[str, tuple[str, ...]] = {"bbh": BBH_DEFAULT, "mmlu-redux": MMLU_DEFAULT}


def choose(name: str, subjects: Sequence[str] | None) -> tuple[str, ...]:
    """The subjects of a run on ``name``: None is the paper's choice, ["all"] every one, else the list itself.

    Raises DataError for a name that is not a subject of this dataset, with the nearest names.
    """
    if subjects is None:
        return DEFAULT[name]
    if list(subjects) == ["all"]:
        return ALL[name]
    if not subjects:
        raise DataError(f"no subject of {name} was asked for; name some, or all, or leave --subjects out")
    for subject in subjects:
        if subject not in ALL[name]:
            raise DataError(unknown(subject, ALL[name], f"subject of {name}"))
    return tuple(dict.fromkeys(subjects))


def unknown(word: str, known: Sequence[str], what: str) -> str:
    """A line for a misspelt name: the nearest known ones, or all where none is near."""
    near = difflib.get_close_matches(word, known, n=4, cutoff=0.5) or [k for k in known if len(word) > 2 and word in k]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    return f"{word!r} is no {what}; {hint}"
