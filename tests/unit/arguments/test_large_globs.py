"""Patterns of paths that are too large: refused at load, and where one is judged it fails closed."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from core.arguments.path_globs import PathGlob
from core.config import Config

LONGEST = 4095


@pytest.mark.parametrize(
    "place", [("read", "allow"), ("read", "deny"), ("write", "allow"), ("write", "deny"), ("ask", "paths")]
)
def test_a_pattern_longer_than_any_path_is_a_fault_at_load(place):
    section, name = place
    for text, fine in (("/" + "?" * (LONGEST - 1), True), ("/" + "?" * LONGEST, False), ("é" * 2048, False)):
        config = {"tools": {section: {name: ["/fine", text]}}}
        if fine:
            assert Config.model_validate(config)
            continue
        with pytest.raises(ValidationError, match=r"no path has more than 4,095; write a shorter pattern"):
            Config.model_validate(config)


@pytest.mark.parametrize("piece", ["?", "*a", "**a", "/**/a", "é*"])
def test_the_largest_pattern_that_loads_is_compiled(yard, piece):
    text = "/" + piece * ((LONGEST - 1) // len(piece.encode()))
    Config.model_validate({"tools": {"read": {"deny": [text]}}})
    assert yard.read(yard.file("work/f"), deny=[text]) == "none"


def test_a_pattern_that_cannot_be_compiled_means_every_path_to_deny_and_none_to_allow():
    glob = PathGlob("", "/" + "?" * 3_000_000)
    assert glob.catches("/x")
    assert not glob.matches("/x")
    assert not PathGlob("", "/??").catches("/x")
