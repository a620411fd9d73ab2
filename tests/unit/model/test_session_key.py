from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.session import SessionKey

GOOD = [
    "agent:main:main",
    "agent:main:discord:123456789",
    "agent:main:telegram:-1001234567890",
    "agent:a-b_9:main:subagent:x1",
    "agent:main:slack:U123:subagent:x1:subagent:x2",
]
BAD = [
    "", "main", "agent:main", "agent:Main:main", "agent::main", "agent:main:other", "agent:main:a:b:c",
    "agent:main:main:subagent:", "agent:main:discord:", "agent:ma in:main", "agent:main:dis cord:1",
    "agent:main:main\n", "agent:../x:main", "agent:main:telegram:--7", "agent:main:telegram:-",
    "agent:main:main:subagent:../../x",
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_a_key_reads_back_as_it_was_written(text):
    assert str(SessionKey.parse(text)) == text


@pytest.mark.parametrize("text", BAD)
def test_a_key_of_no_known_form_is_refused_and_quoted(text):
    with pytest.raises(ValueError, match="session key"):
        SessionKey.parse(text)


@given(st.text())
def test_no_text_makes_the_reader_fail_otherwise(text):
    try:
        key = SessionKey.parse(text)
        assert SessionKey.parse(str(key)) == key
    except ValueError:
        return


def test_a_channel_has_one_spelling_and_a_chat_keeps_its_own():
    key = SessionKey.parse("agent:main:Telegram:AbC:subagent:X1")
    assert key == SessionKey.parse("agent:main:telegram:AbC:subagent:X1")
    assert str(key) == "agent:main:telegram:AbC:subagent:X1"
    assert key != SessionKey.parse("agent:main:telegram:abc:subagent:X1")


def test_depth_counts_the_spawns():
    assert SessionKey.parse(GOOD[0]).depth == 0
    assert SessionKey.parse(GOOD[-1]).depth == 2
