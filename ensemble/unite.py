"""UniTE: ensembling over the union of every model's most probable symbols (arXiv 2410.03777; SPEC 4)."""

from collections.abc import Callable, Container, Iterable, Sequence

from ensemble.combine import is_blank
from ensemble.tokens import Symbol


def union_of(tops: Iterable[Iterable[Symbol | None]]) -> list[Symbol]:
    """Every model's most probable symbols, the drafter's first, each by falling probability, none twice."""
    return list(dict.fromkeys(symbol for top in tops for symbol in top if symbol is not None))


def stand_ins(
    union: Sequence[Symbol], known: Container[Symbol], first_piece: Callable[[bytes], Symbol | None]
) -> list[Symbol | None]:
    """For every union symbol the symbol of one model whose probability is its mass; None: no mass.

    known: the model's own symbols; one of them stands for itself. A missing one gets the first token of the model's own
    tokenization (`first_piece`; None if it is no text), unless that token already stands for another union symbol: a
    model's mass is counted once, or "confident" (a mean above 1/2) would not imply "chosen".
    """
    taken = {symbol for symbol in union if symbol in known}
    result: list[Symbol | None] = []
    for symbol in union:
        if symbol not in known:
            symbol = first_piece(symbol)
            if symbol in taken:
                symbol = None
            elif symbol is not None:
                taken.add(symbol)
        result.append(symbol)
    return result


def extensions_in(
    union: Sequence[Symbol], candidates: Iterable[Symbol], is_probable: Callable[[int], bool]
) -> list[tuple[int, list[int]]]:
    """For heuristic sharpening: each probable candidate's column, and those of the other symbols that start with it.

    candidates: the drafter's symbols. White space and EOS have no extensions."""
    column = {symbol: i for i, symbol in enumerate(union)}
    found = []
    for head in dict.fromkeys(candidates):
        if isinstance(head, bytes) and is_probable(column[head]) and not is_blank(head):
            found.append(
                (column[head], [i for i, u in enumerate(union) if i != column[head] and _starts(u, head)])
            )
    return found


def _starts(symbol: Symbol, head: bytes) -> bool:
    return isinstance(symbol, bytes) and symbol.startswith(head)
