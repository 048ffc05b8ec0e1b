"""The imports between the rooms of the project go one way, so that each can be read, tested and used alone."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "ensemble": set(),
    "safe": {"ensemble"},
    "data": set(),
    "eval": {"data"},
    "cli": {"ensemble", "safe", "data", "eval"},
    "run_safe.py": {"cli"},
    "run_safe_mmlu.py": {"cli"},
}
STUDIES = {"scripts", "demo", "benchmarks", "tests"}  # may import anything; nobody imports them
ROOMS = {name.removesuffix(".py") for name in MAY_IMPORT} | STUDIES


def imported_rooms(file: Path) -> set[str]:
    """The rooms of the project that a file imports from, by full name or by a dot."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: write the full name of the module"
            found.add(node.module.split(".")[0])
    return found & ROOMS


@pytest.mark.parametrize("room", [room for room in MAY_IMPORT if (ROOT / room).exists()])
def test_a_room_imports_only_the_rooms_below_it(room):
    place = ROOT / room
    files = [place] if place.suffix else sorted(place.rglob("*.py"))
    for file in files:
        beyond = imported_rooms(file) - MAY_IMPORT[room] - {room}
        assert not beyond, f"{file.relative_to(ROOT)} imports {', '.join(sorted(beyond))}"


@pytest.mark.parametrize("file", sorted(ROOT.glob("*/*.py")), ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_nothing_hides_the_builtin_eval(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert all(alias.asname or not alias.name.startswith("eval") for alias in node.names), node.lineno
