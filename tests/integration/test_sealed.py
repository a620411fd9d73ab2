"""Once it has started, the daemon imports nothing that an exchanged file could be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adapters.channels.web import render

ROOT = Path(__file__).parents[2]
SHADOW = "raise SystemExit('the file beside the program ran')"


@pytest.fixture
def beside(tmp_path):
    """A directory of the search path, in front of the standard library, with a module that has its name."""
    (tmp_path / "tabnanny.py").write_text(SHADOW)
    (tmp_path / "late.py").write_text("print('late ran')")
    return tmp_path


def run(code: str, beside: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import bot.sealed, sys\n{code}"],
        cwd=beside,
        env={"PYTHONPATH": f"{beside}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=30,
    )


@pytest.mark.parametrize("module", ["bot.explain", "adapters.parsers.pool", "jinja2", "bashlex", "late"])
def test_after_the_start_neither_the_program_nor_its_libraries_are_read(module, beside):
    assert run(f"import {module}", beside).returncode == 0
    done = run(f"bot.sealed.seal(); import {module}", beside)
    assert "ModuleNotFoundError" in done.stderr
    assert f"{module.split('.')[0]}" in done.stderr
    assert "start Sayso again" in done.stderr
    assert "late ran" not in done.stdout


def test_the_standard_library_is_there_and_is_the_systems(beside):
    found = "import tabnanny, csv, _csv; print(tabnanny.__file__)"
    assert "the file beside the program ran" in run(found, beside).stderr
    done = run(f"bot.sealed.seal(); {found}", beside)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == Path(subprocess.__file__).parent


def test_what_is_loaded_stays_as_it_is(beside):
    done = run("import bot.clock; bot.sealed.seal(); from bot.clock import SystemClock; print('ok')", beside)
    assert done.stdout == "ok\n"


def test_templates_are_read_once():
    environment = render._ENVIRONMENT
    assert environment.auto_reload is False
    assert set(environment.loader.list_templates()) == {
        file.name for file in (ROOT / "adapters/channels/web/templates").iterdir()
    }
