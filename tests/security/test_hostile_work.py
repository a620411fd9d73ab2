"""Commands made to cost much: what judging them takes in time and memory has bounds."""

from __future__ import annotations

import asyncio
import threading
import time
import tracemalloc
from contextlib import contextmanager

import pytest

from core.decider import LOOKED_AT_ONCE
from core.execsec.deny_rules import spellings
from core.judge import Judge
from core.model.command import CommandFacts, Segment, Word
from core.shell.names import names
from tests.core_system import exec_call
from tests.shell_world import judge, look

MB = 1024 * 1024
PATIENCE_S = 4.0  # of this thread; each of these took half a minute, or the memory of a machine
MANY_WORDS = "xargs " + " ".join(f"w{number:05}xxxxxxxxx" for number in range(4000))


@contextmanager
def within(most_mb: float, seconds: float = PATIENCE_S):
    tracemalloc.start()
    began = time.thread_time()
    try:
        yield
        took, (_, peak) = time.thread_time() - began, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert took < seconds
    assert peak < most_mb * MB


@pytest.mark.parametrize("name", ["1" * 60_000 + "!", "1." * 30_000 + "!", "a" * 60_000 + "-0" * 2000])
def test_a_name_longer_than_any_file_s_is_no_work(name):
    with within(2):
        assert names(Segment(words=(Word(name, name),))) == {name}


def test_long_names_are_not_kept():
    long = [f"{number}{'x' * 60_000}" for number in range(200)]
    tracemalloc.start()
    for name in long:
        names(Segment(words=(Word(f"/{name}", f"/{name}"),)))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < MB


def test_a_name_as_long_as_a_file_s_may_be_goes_by_its_other_names_too():
    name = "python3" + "." + "1" * 247
    assert len(name) == 255
    assert "python" in names(Segment(words=(Word(name, name),)))


@pytest.mark.parametrize(
    "pattern", ["* w00001xxxxxxxxx w2*", "w00001xxxxxxxxx nothing*", "*nothing*", "nothing"]
)
def test_a_carrier_of_thousands_of_words_is_matched_without_being_copied_for_each(pattern):
    facts = look(MANY_WORDS)
    with within(40, seconds=20):
        judgement = judge(facts, deny=[pattern])
    assert judgement.decision.rule != "exec.deny"


def test_of_a_carrier_of_thousands_of_words_the_last_is_still_denied():
    facts = look(MANY_WORDS + " rm -rf x")
    with within(40):
        assert judge(facts, deny=["*nothing*", "rm -rf *"]).decision.rule == "exec.deny"


def test_the_spellings_of_a_carrier_of_thousands_of_words_are_not_kept_at_once():
    facts = look(MANY_WORDS)
    with within(40, seconds=20):
        assert "nothing" not in spellings(facts)


@pytest.mark.parametrize(
    ("line", "pattern", "denied"),
    [
        ("xargs rm", "rm *", True),  # what it is given goes behind the word
        ("xargs -n 1 rm -rf x", "rm -rf *", True),
        ("xargs -n 1 'rm -rf' x", "rm -rf x", True),
        ("git commit -m 'a rm -rf x'", "rm -rf *", False),  # in the midst of a word nothing begins
        ("git commit -m rmdir", "rm *", False),
        ("rg rm -rf x", "rm *", False),  # carries nothing
        ("xargs ' rm' x", "rm *x", True),
    ],
)
def test_a_deny_rule_sees_what_a_carrier_carries_from_each_word_on(line, pattern, denied):
    assert (judge(line, deny=[pattern]).decision.rule == "exec.deny") is denied


def test_a_thousand_entries_do_not_have_the_arguments_rendered_a_thousand_times():
    entries = [{"pattern": "/usr/bin/rg", "argPattern": f"z{number}"} for number in range(1000)]
    facts = look("rg " + "a " * 4000)
    with within(20):
        assert judge(facts, allowlist=entries).decision.rule == "exec.allowlist-miss"
    assert str(judge("rg z7", allowlist=entries).decision.effect) == "allow"


class Noting(Judge):
    """Notes in which thread it decides, and how many decide at once."""

    def verdict(self, case, remembered):
        self.threads = [*getattr(self, "threads", []), threading.current_thread()]
        self.busy = getattr(self, "busy", 0) + 1
        self.most = max(getattr(self, "most", 0), self.busy)
        time.sleep(0.02)
        self.busy -= 1
        return super().verdict(case, remembered)


def entries(count):
    listed = [{"pattern": "/usr/bin/env", "argPattern": f"z{number}"} for number in range(count)]
    return {"tools": {"profile": "coding", "exec": {"security": "allowlist", "allowlist": listed}}}


@pytest.mark.parametrize(("count", "aside"), [(400, True), (3, False)])
async def test_many_commands_are_compared_with_many_entries_beside_the_event_loop(make_system, count, aside):
    system = make_system(entries(count))
    system.judge.__class__ = Noting
    await system.gate.consider(exec_call(line="true x; true y; ls z"))
    assert (system.judge.threads[0] is not threading.main_thread()) is aside


async def test_the_large_commands_of_one_agent_take_few_threads_while_they_are_decided(make_system):
    system = make_system(entries(1))
    system.judge.__class__ = Noting
    call = exec_call(line="ls " + "x" * 4000)
    await asyncio.gather(*(system.gate.consider(call) for _ in range(8)))
    assert isinstance(system.judge.most, int)
    assert 1 <= system.judge.most <= LOOKED_AT_ONCE


def test_what_cannot_be_analysed_has_the_spelling_it_came_in():
    assert set(spellings(CommandFacts("rg $(", "rg $("))) == {"rg $("}
