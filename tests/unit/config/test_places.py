"""Places of the configuration: what can name one, and what is said of the rest."""

from __future__ import annotations

import pytest

from bot.config import Overrides, load
from core.errors import ConfigError

NEAR_MISSES = [
    "user:5/1",
    "channel:-100/7",
    "thread:-100/",
    "thread:-100/x",
    "thread:/7",
    "-100/7",
    "thread:",
    "a b",
]


@pytest.fixture
def told(tmp_path):
    def tell(to):
        path = tmp_path / "sayso.yaml"
        path.write_text(f"approvals: {{exec: {{targets: [{{channel: telegram, to: '{to}'}}]}}}}\n")
        return load([path], env={}, overrides=Overrides())

    return tell


@pytest.mark.parametrize("to", ["user:5", "channel:-1001", "thread:-1001/7", "thread:17.5", "-1001"])
def test_a_place_is_taken(told, to):
    assert told(to).config.approvals.exec.targets[0].to == to


@pytest.mark.parametrize("to", NEAR_MISSES)
def test_what_is_none_is_told_with_the_forms_there_are(told, to):
    with pytest.raises(ConfigError, match=r"sayso\.yaml:1.*targets\[0\]\.to.*thread:CHAT/TOPIC"):
        told(to)
