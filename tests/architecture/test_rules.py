"""Rules over the syntax tree that no linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for top in ("core", "adapters", "bot") for path in (ROOT / top).rglob("*.py"))
CLOCK = ROOT / "bot" / "clock.py"
WALL_CLOCK = {
    ("time", "time"),
    ("time", "time_ns"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("date", "today"),
}


def nodes(path: Path) -> Iterator[ast.AST]:
    yield from ast.walk(ast.parse(path.read_text(), str(path)))


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in nodes(path) if isinstance(node, ast.Call))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_started_through_a_shell_string(path):
    for call in calls(path):
        shell = [kw for kw in call.keywords if kw.arg == "shell"]
        assert not shell, f"line {call.lineno}: shell= is never needed; give an argv"
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        assert name not in {"system", "popen", "create_subprocess_shell"}, f"line {call.lineno}: {name}"


@pytest.mark.parametrize("path", [p for p in MODULES if p != CLOCK], ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_clock_reads_the_wall_clock(path):
    for call in calls(path):
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            read = (call.func.value.id, call.func.attr)
            assert read not in WALL_CLOCK, f"line {call.lineno}: {'.'.join(read)}() belongs in bot/clock.py"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_broad_except_raises_again_or_states_its_reason(path):
    lines = path.read_text().splitlines()
    for node in nodes(path):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node):
            reraises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
            reason = re.search(r"#.*[a-z]{3}.* .*[a-z]{3}", lines[node.lineno - 1])
            assert reraises or reason, f"line {node.lineno}: why is everything caught here?"


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in {"Exception", "BaseException"} for kind in kinds)


def test_every_protocol_of_the_ports_has_a_contract_suite():
    sources = [ROOT / "core" / name for name in ("ports.py", "store_ports.py", "desks.py")]
    protocols = {
        node.name
        for source in sources
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.ClassDef)
        and any(getattr(base, "id", "") == "Protocol" for base in node.bases)
    }
    suites = " ".join(path.read_text() for path in (ROOT / "tests" / "contract").glob("*.py"))
    missing = {name for name in protocols if not re.search(rf"\b{name}\b", suites)}
    assert not missing, f"no contract suite names {sorted(missing)}"


def test_no_module_is_longer_than_600_lines_and_no_function_longer_than_60():
    for path in MODULES:
        text = path.read_text()
        assert text.count("\n") <= 600, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                assert length <= 60, f"{path}:{node.lineno} {node.name} has {length} lines"


def test_the_project_speaks_of_itself_alone():
    foreign = re.compile(r"openclaw'?s|clawdbot'?s", re.IGNORECASE)
    for path in (*MODULES, ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        found = foreign.search(path.read_text())
        assert not found, f"{path}: {found.group() if found else ''}"
