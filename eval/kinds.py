"""BBH's other kinds of answers: two words, word lists, brackets, integers, and titles (DATASETS 6)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from eval.choices import extract_choice
from eval.extract import (
    NOT_FIRST,
    Found,
    Statement,
    find,
    first_sentence,
    last_stated,
    sentences,
    statements,
    unwrapped,
)
from eval.numbers import UNSURE, extract_number, same_number

PAIRS = {
    "boolean_expressions": ("True", "False"),
    "causal_judgement": ("Yes", "No"),
    "navigate": ("Yes", "No"),
    "web_of_lies": ("Yes", "No"),
    "sports_understanding": ("yes", "no"),
    "formal_fallacies": ("valid", "invalid"),
}
INTEGERS = ("object_counting", "multistep_arithmetic_two")
NO = r"(?:\b(?:not|never|neither|cannot|fails)\b|n[’']t\b)[^.\n]{0,40}?\b"


@dataclass(frozen=True)
class Phrasing:
    """Other words in which a task's first and second answer are given."""

    yes: re.Pattern
    no: re.Pattern


def _phrasing(yes: str, no: str) -> Phrasing:
    return Phrasing(re.compile(rf"\b(?:{yes})\b", re.IGNORECASE), re.compile(no, re.IGNORECASE))


PHRASINGS = {
    "formal_fallacies": _phrasing("valid", rf"\binvalid\b|{NO}valid\b|\bfallac"),
    "sports_understanding": _phrasing("plausible", rf"\bimplausible\b|{NO}plausible\b"),
    "web_of_lies": _phrasing("tells the truth|is telling the truth|truthful", rf"\bl(?:ies|ying)\b|{NO}(?:tell|truth)"),
    "navigate": _phrasing(
        "(?:return|end up|be|are|is|back)[^.\n]{0,30}starting point", rf"{NO}[^.\n]{{0,30}}starting point"
    ),
}
BRACKETS = re.compile(r"[\[\](){}<>]")
BRACKET_RUN = re.compile(r"(?:[\[\](){}<>](?![\w])[\s,'\"\\$*`]*)+")
LIST_SIGN = re.compile(r"(?m)^[ \t]*(?:\(?\d{1,3}[.):]|[-*•])[ \t]+|(?<=\s)\(?\d{1,3}[.)](?=\s)")
OPENING = re.compile(
    r"[^:\n]{0,80}\b(?:sorted|order(?:ed)?|list|words|alphabetical(?:ly)?)\b[^:\n]{0,60}:", re.IGNORECASE
)


def extract_bbh(task: str, response: str, gold: str, choices: Sequence[str], truncated: bool) -> str | None:
    """The answer of a BBH response, in the task's own form."""
    if task in PAIRS:
        return _one_of(task, response, truncated)
    if task in INTEGERS:
        return extract_number(response, truncated, words=True)
    if task == "word_sorting":
        return find(response, truncated, _stated_words, _loose_words)
    if task == "dyck_languages":
        return find(response, truncated, _stated_brackets, _loose_brackets)
    if not re.fullmatch(r"\(?[A-Z]\)?", gold.strip()):
        return find(response, truncated, _stated_title, lambda text: None)
    letter = extract_choice(response, choices, truncated, most=18)
    return None if letter is None else f"({letter})"


def same_bbh(task: str, prediction: str, gold: str) -> bool:
    """Whether an answer is the target: case and spacing do not count, order does."""
    if task in INTEGERS:
        return same_number(prediction, gold)
    if task == "dyck_languages":
        return BRACKETS.findall(prediction) == BRACKETS.findall(gold)
    if task not in PAIRS and task != "word_sorting":
        prediction, gold = (text.strip(" ().,*\"'") for text in (prediction, gold))
    return prediction.casefold().split() == gold.casefold().split()


def _one_of(task: str, response: str, truncated: bool) -> str | None:
    """The last stated one of two words, else the one that the last sentence has."""
    yes, no = PAIRS[task]

    def read(statement: Statement) -> Found | None:
        value = unwrapped(statement.value)
        if statement.kind == "box":
            return which(task, value) or Found(None)
        if "\\boxed" in statement.value:
            return None
        value = first_sentence(value)
        if not statement.negated or "=" in value:  # "the answer is not ( True ) = False"
            found = which(task, value)
            return found and Found(found.value, literal=True)
        found = which(task, NOT_FIRST.sub("", value))  # "the answer is not True"
        return found and Found({yes: no, no: yes}.get(found.value), literal=True)

    def loose(text: str) -> str | None:
        for sentence in reversed(sentences(text)[-1:]):
            if not sentence.endswith("?") and (found := which(task, sentence)) is not None:
                return found.value
        return None

    return find(response, truncated, lambda text, _: last_stated(text, read), loose)


def which(task: str, text: str) -> Found | None:
    """Which of a task's two words a sentence says. Found(None) if it says both; None if neither."""
    yes, no = PAIRS[task]
    if text.endswith("?"):
        return None
    if task == "boolean_expressions":
        return _truth(text)
    either = re.search(
        rf"\b{yes}\b\W{{0,4}}(?:or|and|/)\W{{0,4}}{no}\b|\b{no}\b\W{{0,4}}(?:or|and|/)\W{{0,4}}{yes}\b", text, re.I
    )
    if either:
        return Found(None)
    if first := re.match(rf"\W*(?P<yes>{yes})?(?(yes)|(?P<no>{no}))\b", text, re.IGNORECASE):
        return Found(yes if first["yes"] else no)
    if (phrasing := PHRASINGS.get(task)) is not None:
        if phrasing.no.search(text):
            return Found(
                yes if re.search(r"\b(?:not|n[’']t) (?:\w+ )?(?:invalid|implausible|lying)\b", text, re.I) else no
            )
        if phrasing.yes.search(text):
            return Found(yes)
    if task == "formal_fallacies":
        return None
    said = {word for word in re.findall(r"[a-z]+", text.casefold()) if word in (yes.casefold(), no.casefold())}
    if len(said) != 1:
        return Found(None) if said else None
    return Found(yes if said == {yes.casefold()} else no)


def _truth(text: str) -> Found | None:
    """True or False: the value of a sentence's last step ("not True = False", "True and False is False")."""
    if first := re.match(r"\W*(true|false)\b(?!\W*(?:or|and|=|is|/)\b|\W*[=/])", text, re.IGNORECASE):
        return Found(first[1].capitalize())
    last = re.split(r"=|\b(?:is|are|becomes|equals|gives|yields|to|as|be)\b|→|->|⇒", text)[-1]
    said = [word.capitalize() for word in re.findall(r"\b(?:true|false)\b", last, re.IGNORECASE)]
    if not said:
        said = [word.capitalize() for word in re.findall(r"\b(?:true|false)\b", text, re.IGNORECASE)][-1:]
    if len(set(said)) > 1:
        return Found(None)
    if not said:
        return None
    if len(said) == 1 and re.search(r"\bnot\W{1,4}(?:true|false)\b", last, re.IGNORECASE):
        return Found("False" if said[0] == "True" else "True")
    return Found(said[0])


def _stated_title(text: str, truncated: bool) -> Found | None:
    """The text that is stated, for the rows whose target is no letter."""

    def read(statement: Statement) -> Found | None:
        value = unwrapped(statement.value).rstrip(".").strip(" *\"'“”")
        return Found(value) if value and "\\boxed" not in value else None

    return last_stated(text, read)


def _stated_words(text: str, truncated: bool) -> Found | None:
    """The list of the last statement; where it stands in the lines below, all of them."""
    found = None
    for statement in statements(text):
        value = statement.value
        if statement.negated or "\\boxed" in value:
            continue
        if statement.kind == "words" and "\n" in text[statement.start : statement.end].rstrip():
            value = _block(text, statement)
        if listed := word_list(value):
            found = Found(" ".join(listed))
        elif statement.kind == "box":
            found = Found(None)
    return found


def _block(text: str, statement: Statement) -> str:
    """The lines of a list that starts with a statement's value: those behind the first are numbered or one word."""
    at = text.find(statement.value, statement.start)
    first, *rest = [line for line in text[at:].splitlines() if line.strip()]
    others = takewhile(lambda line: LIST_SIGN.match(line) or len(line.split()) == 1, rest)
    return "\n".join([first, *others])


def _loose_words(text: str) -> str | None:
    """The list in the last line, or in the last lines where each is numbered or has one word."""
    lines = [line for line in text.splitlines() if line.strip(" \t*`-")]
    if not lines or UNSURE.search(lines[-1]):
        return None
    tail = []
    while lines and (LIST_SIGN.match(lines[-1]) or len(lines[-1].split()) == 1):
        tail.insert(0, lines.pop())
    listed = word_list("\n".join(tail)) if len(tail) > 1 else word_list((tail or lines)[-1])
    return " ".join(listed) if len(listed) > 1 else None


def word_list(text: str) -> list[str]:
    """The words of a list that is written with spaces, commas, numbers, arrows or a line for each word."""
    text = re.sub(r"\\[ ,;]|\\quad|~|\$", " ", unwrapped(text))
    if opening := OPENING.match(text):
        text = text[opening.end() :]
    text = LIST_SIGN.sub(" ", text)
    text = text if "\n" in text.strip() else first_sentence(text)
    if text.count(",") > 1:
        text = re.sub(r",\s*and\s", ", ", text)
    parts = re.split(r"[\s,;<>→]+|->", text)
    return [word for part in parts if (word := part.strip(".'\"`*_[](){}:“”-‘’").casefold())]


def _stated_brackets(text: str, truncated: bool) -> Found | None:
    """The brackets that the last statement starts with. A box is read to the end of its line: braces are answers."""
    found = None
    for statement in statements(text):
        if statement.negated or (statement.kind == "words" and "\\boxed" in statement.value):
            continue
        value = statement.value
        if statement.kind == "box":
            value = _boxed_brackets(text[statement.start :].partition("\n")[0])
        run = BRACKET_RUN.match(value.lstrip(" \t*`:'\"$"))
        if run is not None:
            found = Found(" ".join(BRACKETS.findall(run[0])))
        elif statement.kind == "box":
            found = Found(None)
    return found


def _boxed_brackets(line: str) -> str:
    """What a box on a line holds, up to the last brace but for those that LaTeX needs."""
    inside = (
        line.partition("{")[2].rstrip(" $.*\\)]")
        if line.rstrip(" .").endswith(("\\)", "\\]", "$"))
        else line.partition("{")[2]
    )
    inside = inside.rstrip(" .*")
    depth = 1
    while wrapper := re.match(r"\s*\\(?:text|texttt|mathrm|mathtt)\s*\{", inside):
        inside, depth = inside[wrapper.end() :], depth + 1
    for _ in range(depth):
        inside = inside.rstrip(" $").removesuffix("}")
    return inside.replace("\\left", "").replace("\\right", "").replace("\\langle", "<").replace("\\rangle", ">")


def _loose_brackets(text: str) -> str | None:
    lines = [line for line in text.splitlines() if line.strip(" \t*`")]
    last = lines[-1].rpartition(":")[2] if lines else ""
    if re.search(r"\w", last):
        return None
    return " ".join(BRACKETS.findall(last)) or None
