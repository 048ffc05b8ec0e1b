"""What of a response may hold an answer, and the statements in it. Everything here is linear in the text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

THOUGHT = re.compile(r"<(?P<close>/?)(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
NEXT_QUESTION = re.compile(
    r"\n[ \t*#]*(?:Question|Problem|Exercise|Input|Human|User|Q)\b[ \t]*\d*[ \t]*[:.]|\bQ:|<\|im_start\||<\|im_end\|>"
)
MARKER = re.compile(
    r"\b(?:(?:final|correct|right|best|my)[ \t]+)?"
    r"(?:answers?|(?:(?:correct|right|best)[ \t]+)(?:one|option|choice|letter|statement|solution|result|value))"
    r"[ \t*_\"')\]]{0,8}"
    r"(?:(?:is|are|was|would be|must be|should be|has to be)\b(?:[ \t]+(?:then|therefore|thus|clearly|simply)\b)?|:|=)"
    r"[ \t*_:]{0,8}",
    re.IGNORECASE,
)
BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])")
HASHES = re.compile(r"####[ \t]*(?P<value>[^\n]*)")
SENTENCE_END = re.compile(r"(?:(?<![A-Z\s])[.!?](?=[\s*\"')\]}$]|$)|\n)")


@dataclass(frozen=True)
class Statement:
    """An explicit statement of an answer. kind: box, hashes or words. value: what is stated; None: nothing (an empty or
    an unclosed box). start, end: where it stands."""

    kind: str
    value: str | None
    start: int
    end: int


LONGEST = 20_000  # characters at either end of a response; what is between them states no answer


def without_thoughts(response: str) -> str:
    """The text outside reasoning blocks; nothing behind one that is never closed."""
    kept, at, inside = [], 0, False
    for tag in THOUGHT.finditer(response):
        if tag["close"]:
            if not inside:  # the block was opened in the prompt
                kept.clear()
            at, inside = tag.end(), False
        elif not inside:
            kept.append(response[at : tag.start()])
            inside = True
    text = "".join(kept if inside else [*kept, response[at:]])
    return text if len(text) <= 2 * LONGEST else f"{text[:LONGEST]}\n{text[-LONGEST:]}"


def boxes(text: str) -> list[Statement]:
    """Every box, in order; nested ones count once, as the outer."""
    found, reached = [], 0
    for match in BOX.finditer(text):
        if match.start() < reached:
            continue
        value, end = _braced(text, match.end())
        found.append(Statement("box", value, match.start(), end))
        reached = end
    return found


def _braced(text: str, at: int) -> tuple[str | None, int]:
    """The group in braces at a place (or, without braces, the token there), and where it ends."""
    while at < len(text) and text[at] in " \t":
        at += 1
    if at == len(text) or text[at] != "{":
        bare = re.compile(r"[-+]?[\w.]+").match(text, at)
        # a box that is only mentioned ("put it in \\boxed as asked") holds a word, not an answer
        return (bare[0], bare.end()) if bare and bare[0][0] in "-+.0123456789" else ("", at)
    depth = 0
    for i in range(at, min(len(text), at + 20_000)):
        if text[i] == "{" and text[i - 1] != "\\":
            depth += 1
        elif text[i] == "}" and text[i - 1] != "\\":
            depth -= 1
            if depth == 0:
                return text[at + 1 : i].strip(), i + 1
    return None, len(text)


def spoken(text: str) -> list[Statement]:
    """Every "the answer is ...", "Answer: ...", to the end of its line or to the next; negated ones left out."""
    found, matches = [], list(MARKER.finditer(text))
    for match, after in zip(matches, [*matches[1:], None], strict=False):
        newline = text.find("\n", match.end())
        end = min(len(text) if newline < 0 else newline, len(text) if after is None else after.start())
        value = text[match.end() : min(end, match.end() + 2000)]
        if not re.match(r"\s*(?:not\b|n't\b|neither\b)", value, re.IGNORECASE):
            found.append(Statement("words", value.strip(), match.start(), match.end() + len(value)))
    return found


def hashes(text: str) -> list[Statement]:
    """Every `#### value`."""
    return [Statement("hashes", m["value"].strip(), m.start(), m.end()) for m in HASHES.finditer(text)]


def cut_run_on(text: str, statements: Iterable[Statement]) -> str:
    """The text before a next question that the model asks itself, if an answer was stated before it."""
    first = min((s.end for s in statements if s.value), default=None)
    if first is None:
        return text
    for match in NEXT_QUESTION.finditer(text):
        if match.start() >= min(s.start for s in statements if s.value):
            stated = [s for s in statements if s.value and s.start < match.start()]
            if stated:
                return text[: match.start()]
    return text


def sentences(text: str) -> list[str]:
    """The sentences (and lines) of a text, blank ones left out."""
    return [part.strip() for part in SENTENCE_END.split(text) if part.strip(" \t*_$.-#>`")]


def clean(value: str) -> str:
    """A stated value without Markdown and dollar signs around it."""
    return value.replace("**", "").replace("__", "").strip(" \t*_`")
