"""BBH's other kinds of answers: True/False, Yes/No, valid/invalid, word lists, brackets, integers (DATASETS 6)."""

import re

from eval.choices import extract_choice
from eval.numbers import extract_number, same_number
from eval.response import boxes, clean, cut_run_on, sentences, spoken, without_thoughts

PAIRS = {
    "boolean_expressions": ("True", "False"),
    "causal_judgement": ("Yes", "No"),
    "navigate": ("Yes", "No"),
    "web_of_lies": ("Yes", "No"),
    "sports_understanding": ("yes", "no"),
    "formal_fallacies": ("valid", "invalid"),
}
INTEGERS = ("object_counting", "multistep_arithmetic_two")
BRACKETS = re.compile(r"[\[\](){}<>]")
SAID_NO = {
    "valid": re.compile(r"\binvalid\b|\b(?:not|n't|isn't|never)\b[^.\n]{0,40}\bvalid\b", re.IGNORECASE),
    "plausible": re.compile(r"\bimplausible\b|\b(?:not|n't|isn't)\b[^.\n]{0,40}\bplausible\b", re.IGNORECASE),
}


def extract_bbh(task: str, response: str, gold: str, choices, truncated: bool) -> str | None:
    """The answer of a BBH response, in the task's own form."""
    if task in PAIRS:
        return _one_of(PAIRS[task], response, truncated)
    if task in INTEGERS:
        return extract_number(response, truncated, words=True)
    if task == "word_sorting":
        return _word_list(response, truncated)
    if task == "dyck_languages":
        return _brackets(response, truncated)
    if not re.fullmatch(r"\([A-Z]\)", gold.strip()) and (said := _stated(response)):
        return said[-1].rstrip(".").strip()
    letter = extract_choice(response, choices, truncated, most=18)
    return None if letter is None else f"({letter})"


def same_bbh(task: str, prediction: str, gold: str) -> bool:
    """Whether an answer is the target: case and spacing do not count, order does."""
    if task in INTEGERS:
        return same_number(prediction, gold)
    if task == "dyck_languages":
        return BRACKETS.findall(prediction) == BRACKETS.findall(gold)
    return prediction.casefold().split() == gold.casefold().split()


def _stated(response: str) -> list[str]:
    """What a response states, in order: boxes and "the answer is"."""
    text = without_thoughts(response)
    text = cut_run_on(text, [s for s in (*boxes(text), *spoken(text)) if s.value])
    found = sorted((*boxes(text), *spoken(text)), key=lambda s: s.start)
    return [clean(re.sub(r"\\text\{([^{}]*)\}", r"\1", s.value)) for s in found if s.value]


def _one_of(pair: tuple[str, str], response: str, truncated: bool) -> str | None:
    """The last stated one of two words, else the one that the last sentence has."""
    for value in reversed(_stated(response)):
        head = sentences(value)[0] if sentences(value) else value
        if (word := _which(pair, head)) is not None:
            return word
        if {w.casefold() for w in pair} <= set(re.findall(r"[a-z]+", head.casefold())):
            return None  # both: no answer
    text = without_thoughts(response)
    if truncated or not sentences(text):
        return None
    return _which(pair, sentences(text)[-1])


def _which(pair: tuple[str, str], text: str) -> str | None:
    yes, no = pair
    for word, pattern in SAID_NO.items():
        if word == yes.casefold() or (word == "plausible" and yes == "yes"):
            if pattern.search(text):
                return no
            if re.search(rf"\b{word}\b", text, re.IGNORECASE):
                return yes
    found = {w for w in re.findall(r"[a-z]+", text.casefold()) if w in (yes.casefold(), no.casefold())}
    if len(found) != 1:
        return None
    return yes if found == {yes.casefold()} else no


def _word_list(response: str, truncated: bool) -> str | None:
    """The sorted words as the target writes them; from the last statement, else from the last line that is a list."""
    text = without_thoughts(response)
    text = cut_run_on(text, [s for s in (*boxes(text), *spoken(text)) if s.value])
    said = sorted((*boxes(text), *spoken(text)), key=lambda s: s.start)
    for statement in reversed(said):
        value = statement.value or ""
        if statement.kind == "words" and not re.search(r"\w", value):  # the list stands in the lines below
            value = text[statement.end :].strip().partition("\n\n")[0]
        if words := _words(value):
            return " ".join(words)
    if truncated:
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    words = _words(lines[-1].rpartition(":")[2]) if lines else []
    return " ".join(words) if len(words) > 1 else None


def _words(text: str) -> list[str]:
    text = re.sub(r"(?m)^\s*(?:\d+[.):]|[-*•])\s*", " ", clean(re.sub(r"\\text\{([^{}]*)\}", r"\1", text)))
    text = re.sub(r"\s(?:\d+[.)])\s", " ", f" {text}")
    return [w.strip(".'\"`*_").casefold() for w in re.split(r"[\s,;>]+|->", text) if w.strip(".'\"`*_-")]


def _brackets(response: str, truncated: bool) -> str | None:
    """The closing brackets, a space between them."""
    for value in reversed(_stated(response)):
        if found := BRACKETS.findall(value.split(". ")[0]):
            return " ".join(found)
    lines = [line for line in without_thoughts(response).splitlines() if line.strip()]
    if truncated or not lines or re.search(r"\w", lines[-1]):
        return None
    return " ".join(BRACKETS.findall(lines[-1])) or None
