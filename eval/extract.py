"""What of a response may hold an answer, and the statements in it. Everything here is linear in the text.

Every kind of answer is read in the same way (`find`): what is stated ("the answer is ...", a box, `#### ...`) counts,
the last statement first; what is merely there counts only if nothing is stated and the response ended by itself.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

LONGEST = 20_000  # characters at either end of a response; what is between them states no answer

THOUGHT = re.compile(r"<(?P<close>/?)(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
# full-width forms, signs that look like a minus, and characters that are not seen
PLAIN = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | str.maketrans(
    {"−": "-", "﹣": "-", "。": ".", "\u200b": "", "\u200c": "", "\u200d": "", "\u2060": "", "\ufeff": ""}
)
BOLD = re.compile(r"(?<!\w)(?:\*\*|__)|(?:\*\*|__)(?!\w)|`")
NEXT_QUESTION = re.compile(
    r"\n[ \t*#>]*(?:(?:next|new|another)[ \t]+)?"
    r"(?:question|problem|exercise|example|instruction|input|human|user|q)\b[ \t]*\d*[ \t*]*(?:[:.]|(?=\n))"
    r"|(?<![(\w])Q:|<\|im_start\||<\|im_end\||<\|eot_id\||<\|endoftext\||\[INST\]|</s>",
    re.IGNORECASE,
)
BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])|(?<![\\A-Za-z])boxed(?=\{)")
MENTION = re.compile(r"\b(?:within|inside|in|into|using|with)[ \t]+(?:an?[ \t]+|the[ \t]+)?[$\"']*\Z", re.IGNORECASE)
LINK = re.compile(
    r"(?:[\s$.]|\\(?:quad|,|;|[()\[\]]|text\{|mbox\{)|\})*(?:,|;|(?P<or>or)\b|and\b)?(?:[\s$}]|and\b|\\[()\[\] ])*"
)
HASHES = re.compile(r"####[ \t]*(?P<value>[^\n]*)")
TAGGED = re.compile(r"<answer>(?P<value>[^<]{1,2000})</answer>", re.IGNORECASE)
HEADING = re.compile(r"(?im)^[ \t#*_>-]*(?:(?:the|my|final|correct)[ \t]+)*answer[ \t#*_:]*$")
MARKER = re.compile(
    r"\b(?:answers?|ans|(?:correct|right|best|only)[ \t]+(?:one|option|choice|letter|statement|solution|result|value)"
    r"|my[ \t]+(?:choice|pick|selection))\b(?P<gap>[^.:;=!?\n]{0,60}?)"
    r"(?:\b(?P<verb>(?:is|are|was|were)(?:n[’']t|[ \t]+not)?"
    r"|(?:can|could|should|would|must|will|may|might)(?:[ \t]?not|n[’']t)?(?:[ \t]+\w{1,12})?[ \t]+be|to[ \t]+be)\b"
    r"|(?<=ns)\.(?=[ \t])|[:=]|[ \t][-–—](?=[ \t]))[ \t*_:]{0,8}",
    re.IGNORECASE,
)
NOT = re.compile(r"\bnot\b|n[’']t\b|\bcannot\b|\bneither\b|\bnever\b", re.IGNORECASE)
NOT_FIRST = re.compile(r"\W*(?:\w+ly\W+)?(?:not|neither|none|never)\b", re.IGNORECASE)
BUT = re.compile(r"\bbut[ \t]+(?:rather[ \t]+|instead[ \t]+)?(?:it[ \t]+is[ \t]+|it[’']s[ \t]+)?", re.IGNORECASE)
DENIED = re.compile(
    r"(?:\b(?:wrong|incorrect|bad)|(?:n[’']t|\bnot)[ \t]+(?:think|believe|say|agree|sure|the[ \t]+case)(?:[ \t]+that)?"
    r"(?:[ \t]+the)?)[ \t]+\Z",
    re.IGNORECASE,
)
SUPPOSED = re.compile(r"\b(?:if|whether|suppose|supposing|assume|assuming|unless)\b[^.,;:\n]*\Z", re.IGNORECASE)
DOUBT = re.compile(
    r"\b(?:wait|no|actually|sorry|correction|oops|scratch[ \t]+that|on[ \t]+second[ \t]+thought)\b[,.:!]*"
    r"|\b(?:that|this|it)(?:[’']s|[ \t]+is|[ \t]+was)[ \t]+(?:wrong|incorrect|not[ \t]+(?:right|correct))\b[,.:!]*"
    r"|\bmade[ \t]+(?:a|an)[ \t]+(?:\w+[ \t]+)?(?:mistake|error)\b[,.:!]*",
    re.IGNORECASE,
)
RETRACTED = re.compile(r"wrong|incorrect|mistake|error|scratch|not[ \t]+(?:right|correct)", re.IGNORECASE)
IT_IS = re.compile(
    r"[^.!?\n]{0,60}?\b(?:it|this|that|which)"
    r"(?:[’']s|[ \t]+(?:is|should[ \t]+be|must[ \t]+be|would[ \t]+be|has[ \t]+to[ \t]+be))"
    r"[ \t]+(?:actually[ \t]+|really[ \t]+)?(?P<value>[^\n]{1,200})",
    re.IGNORECASE,
)
SENTENCE_END = re.compile(r"[.!?](?=[\s\"')\]}$]|$)|\n")
LIST_NUMBER = re.compile(r"(?:^|[\n.])[ \t]*\d{1,3}$")
ABBREVIATION = re.compile(r"\b(?:Rs|vs|e\.g|i\.e|Dr|Mr|Mrs|Ans)$")
WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|mathrm|mathbf|mathsf|mathit|mbox|operatorname|bf|rm)[ \t]*\{([^{}]*)\}"
)


@dataclass(frozen=True)
class Statement:
    """An explicit statement of an answer.

    kind: box, hashes or words. value: what is stated, "" for nothing (an empty or an unclosed box).
    start, end: where it stands. negated: it says what the answer is not."""

    kind: str
    value: str
    start: int
    end: int
    negated: bool = False


@dataclass(frozen=True)
class Found:
    """What a statement comes to; None: no answer, or two of them. literal: a "not" in it is part of the answer."""

    value: str | None
    literal: bool = False


def find(
    response: str,
    truncated: bool,
    stated: Callable[[str, bool], Found | None],
    loose: Callable[[str], str | None],
) -> str | None:
    """The answer of a response, by one kind's rules: what is stated, else what is loosely there.

    A next question that the model asks itself ends the response if an answer is stated before it.
    stated: text, cut off -> what the statements come to, None if there are none. loose: text -> answer or None."""
    text = visible(response)
    turns = [match.start() for _, match in zip(range(20), NEXT_QUESTION.finditer(text), strict=False)]
    for end in (*turns, len(text)):
        found = stated(text[:end], truncated and end == len(text))
        if found is not None:
            return found.value
    last = next(reversed(sentences(text)), "")
    if truncated or any(statement.negated for statement in statements(last)):
        return None
    return (loose(text[: turns[0]]) if turns else None) or loose(text)


def visible(response: str) -> str:
    """The text outside reasoning blocks (nothing behind one that is never closed), without Markdown's bold."""
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
    if len(text) > 2 * LONGEST:
        text = f"{text[:LONGEST]}\n{text[-LONGEST:]}"
    return BOLD.sub("", text.translate(PLAIN))


def statements(text: str) -> list[Statement]:
    """All statements in order. Values of boxes that are linked ("\\boxed{3} or \\boxed{5}") are one statement's."""
    in_boxes = boxes(text)
    said = [s for s in (*_spoken(text), *_tagged(text)) if not any(b.start < s.start < b.end for b in in_boxes[-50:])]
    hashes = [Statement("hashes", m["value"][:2000].strip(), m.start(), m.end()) for m in HASHES.finditer(text)]
    denied = [(s.start, s.end) for s in said if s.negated]
    boxed = [
        replace(box, negated=any(start <= box.start < end for start, end in denied)) for box in linked(text, in_boxes)
    ]
    return sorted([*said, *hashes, *boxed], key=lambda s: s.start)


def last_stated(
    text: str, read: Callable[[Statement], Found | None], further: Iterable[Statement] = ()
) -> Found | None:
    """What the last statement says that `read` can make something of; None if there is none.

    further: statements of the kind's own.
    A later correction ("Wait, no, it's 6") replaces it, a later denial takes it back."""
    found, end = None, 0
    for statement in sorted([*statements(text), *further], key=lambda s: s.start):
        what = read(statement)
        if what is None:
            continue
        if statement.negated and not what.literal:
            if found is not None and found.value == what.value:
                found, end = Found(None), statement.end
            continue
        found, end = what, statement.end
    return found if found is None else _corrected(text, found, end, read)


def _corrected(text: str, found: Found, end: int, read: Callable[[Statement], Found | None]) -> Found:
    """What is left of a finding after the doubts that follow it."""
    for _, doubt in zip(range(50), DOUBT.finditer(text, end), strict=False):
        direct = text[doubt.end() : doubt.end() + 40].strip().partition("\n")[0]
        options = [(doubt.end(), direct)] if len(direct.split()) == 1 and direct else []
        for start in (doubt.end(), _next_sentence(text, doubt.end())):
            if (match := IT_IS.match(text, start)) is not None:
                options.append((match.start("value"), match["value"]))
        for at, value in options:
            value = first_sentence(value)
            what = (
                None if NOT_FIRST.match(value) or len(value.split()) > 4 else read(_words(value, at, at + len(value)))
            )
            if what is not None:
                found = what
                break
        else:
            if RETRACTED.search(doubt[0]):
                found = Found(None)
    return found


def _next_sentence(text: str, at: int) -> int:
    stop = SENTENCE_END.search(text, at, at + 200)
    return stop.end() if stop else at


def _words(value: str, start: int, end: int, negated: bool = False) -> Statement:
    return Statement("words", value.strip(), start, end, negated)


def _tagged(text: str) -> Iterator[Statement]:
    for match in TAGGED.finditer(text):
        yield _words(match["value"], match.start(), match.end())


def _spoken(text: str) -> Iterator[Statement]:
    """Every "the answer is ...", "Answer: ...", with the rest of its line (or up to the next one; where nothing follows
    on the line, the next line); it ends with its sentence. What is only supposed ("if the answer is") is left out."""
    matches = sorted([*MARKER.finditer(text), *HEADING.finditer(text)], key=lambda m: m.start())
    for match, after in zip(matches, [*matches[1:], None], strict=False):
        limit = min(len(text) if after is None else max(after.start(), match.end()), match.end() + 2000)
        value, end = _line(text, match.end(), limit)
        before = text[max(0, match.start() - 60) : match.start()]
        if SUPPOSED.search(before):
            continue
        parts = match.groupdict()
        negated = bool(
            NOT.search(f"{parts.get('gap') or ''} {parts.get('verb') or ''}")
            or NOT_FIRST.match(value)
            or DENIED.search(before)
        )
        first = first_sentence(value)
        end = min(end, text.find(first, match.end(), end) % (len(text) + 1) + len(first))
        if negated and (but := BUT.search(first)):
            value, negated = value[value.find(first) + but.end() :], False
        yield _words(value, match.start(), end, negated)


def _line(text: str, at: int, limit: int) -> tuple[str, int]:
    """The rest of the line, or, where that is blank, the next line that is not; and where it ends."""
    while at < limit:
        newline = text.find("\n", at, limit)
        end = limit if newline < 0 else newline
        value = text[at:end]
        if value.strip(" \t*_$:#\\[]()"):
            return value, end
        at = end + 1
    return "", limit


def boxes(text: str) -> list[Statement]:
    """Every box, in order; nested ones count once, as the outer. One that is only mentioned ("within \\boxed{}") is
    none."""
    found, reached = [], 0
    for match in BOX.finditer(text):
        if match.start() < reached:
            continue
        value, end = _braced(text, match.end())
        reached = end
        if value is not None and not (value == "" and MENTION.search(text[max(0, match.start() - 20) : match.start()])):
            found.append(Statement("box", value, match.start(), end))
    return found


def _braced(text: str, at: int) -> tuple[str | None, int]:
    """The group in braces at a place ("" if it is never closed) and where it ends. Without braces, the number or the
    one character there; None for a word: "put it in \\boxed as asked" boxes nothing."""
    while at < len(text) and text[at] in " \t":
        at += 1
    if at == len(text) or text[at] != "{":
        bare = re.compile(r"[-+]?[\d.,]*\d|[A-Za-z](?![A-Za-z])|(?=\n|$)").match(text, at)
        return (bare[0], bare.end()) if bare else (None, at)
    depth = 0
    for i in range(at, min(len(text), at + LONGEST)):
        if text[i] == "{" and text[i - 1] != "\\":
            depth += 1
        elif text[i] == "}" and (text[i - 1] != "\\" or text[i - 2 : i] == "\\\\"):
            depth -= 1
            if depth == 0:
                return text[at + 1 : i].strip(), i + 1
    return "", len(text)


def linked(text: str, boxed: list[Statement]) -> list[Statement]:
    """The boxes, those joined by "or", "and" or a comma made one: nothing, or "a, b"."""
    joined: list[Statement] = []
    for box in boxed:
        before = joined[-1] if joined else None
        gap = "" if before is None else text[before.end : box.start]
        link = LINK.fullmatch(gap) if re.search(r"[,;]|\bor\b|\band\b", gap) and len(gap) < 40 else None
        if link is None or not before.value or not box.value:
            joined.append(box)
        elif before.value != box.value:
            value = "" if link["or"] else f"{before.value}, {box.value}"  # two to choose from are no answer
            joined[-1] = Statement("box", value, before.start, box.end)
    return joined


def first_sentence(value: str) -> str:
    """The first sentence of a stated value; a number at its start is an answer, not a place in a list."""
    return next(iter(sentences(value, numbered=False)), "")


def sentences(text: str, numbered: bool = True) -> list[str]:
    """The sentences (and lines) of a text, but blank ones. An abbreviation ends none, nor (numbered) a list's "1."."""
    parts, start = [], 0
    for stop in SENTENCE_END.finditer(text):
        before = text[max(start, stop.start() - 8) : stop.start()]
        is_short = ABBREVIATION.search(before) or (numbered and LIST_NUMBER.search(before))
        if stop[0] == "." and is_short and text[stop.end() : stop.end() + 4].strip():
            continue
        parts.append(text[start : stop.end()])
        start = stop.end()
    return [part.strip() for part in (*parts, text[start:]) if part.strip(" \t\n*_$.-#>`")]


def unwrapped(value: str) -> str:
    """A value without \\text{} and its like, dollar signs, and what LaTeX spaces and sizes things with."""
    for _ in range(4):
        value = WRAPPER.sub(r" \1 ", value)
    value = re.sub(r"\\(?:left|right|displaystyle|quad|qquad)(?![A-Za-z])|\\[()\[\]]", " ", value)
    return value.strip().strip("$").strip()
