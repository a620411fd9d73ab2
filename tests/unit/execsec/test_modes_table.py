"""Every mode crossed with every other, against a small oracle written from the rules alone."""

from __future__ import annotations

from itertools import product

import pytest

from core.execsec.decide import decide, fallback_allows, together
from core.execsec.tighten import tightened
from core.model.allowlist import AllowlistEntry
from core.model.command import Placement
from core.model.tightening import Stated, Tightening
from tests.shell_world import look, policy

SECURITY = ("deny", "allowlist", "full")
ASK = ("off", "on-miss", "always")
FALLBACK = ("deny", "allowlist")
PLACES = (Placement.SANDBOX, Placement.HOST)
ORDER = ("allow", "ask", "deny")

LINES = {
    "listed": "rg TODO",
    "missed": "ls",
    "half": "rg TODO && ls",
    "unanalysable": "rg TODO > out",
    "inline listed": "python3 -c x",
    "inline missed": "python3 -c y",
    "hazard": "xargs rg",
    "privilege": "sudo rg",
    "gone": "nonesuch",
}


def entries(placement: Placement) -> tuple[AllowlistEntry, ...]:
    return (
        AllowlistEntry("/usr/bin/rg", placement=placement),
        AllowlistEntry("/usr/bin/python3", ("-c", "x"), placement=placement),
    )


def admitted(kind: str) -> bool:
    return kind in {"listed", "inline listed"}


def expected(security: str, ask: str, kind: str, on_unanalysable: str, *, strict: bool) -> str:
    """The oracle: what becomes of one kind of command."""
    if security == "deny" or kind == "gone":
        return "deny"
    if kind == "unanalysable":
        asked = on_unanalysable == "ask" and (security, ask) != ("allowlist", "off")
        return "ask" if asked else "deny"
    if security == "allowlist":
        answer = "allow" if admitted(kind) else "deny" if ask == "off" else "ask"
    else:
        answer = "allow" if ask == "off" else "ask"
        if kind == "privilege":
            answer = "ask"
    if ask == "always" or (strict and kind.startswith("inline")):
        answer = max(answer, "ask", key=ORDER.index)
    return answer


def expected_fallback(security: str, ask: str, fallback: str, kind: str, placement: Placement) -> bool:
    """The oracle: whether silence may become a yes."""
    return (
        kind == "listed"
        and fallback == "allowlist"
        and security != "deny"
        and ask != "always"
        and placement is Placement.SANDBOX
    )


@pytest.mark.parametrize("kind", LINES)
def test_each_mode_answers_as_the_rules_say(kind: str) -> None:
    facts = look(LINES[kind])
    for security, ask, unanalysable, strict, placement in product(
        SECURITY, ASK, FALLBACK, (False, True), PLACES
    ):
        on_unanalysable = "ask" if unanalysable == "allowlist" else "deny"
        under = policy(
            placement, security=security, ask=ask, onUnanalysable=on_unanalysable, strictInlineEval=strict
        )
        judged = decide(facts, under, entries(placement), placement, env=(), seen_before=False)
        wanted = expected(security, ask, kind, on_unanalysable, strict=strict)
        assert str(judged.decision.effect) == wanted, (security, ask, on_unanalysable, strict, placement)


@pytest.mark.parametrize("kind", LINES)
def test_silence_becomes_a_yes_only_where_the_rules_say(kind: str) -> None:
    facts = look(LINES[kind])
    for security, ask, fallback, placement in product(SECURITY, ASK, FALLBACK, PLACES):
        under = policy(placement, security=security, ask=ask, askFallback=fallback)
        allows = fallback_allows(facts, under, entries(placement), placement, ())
        assert allows is expected_fallback(security, ask, fallback, kind, placement), (
            security,
            ask,
            fallback,
        )


@pytest.mark.parametrize("kind", LINES)
def test_entries_of_another_place_or_agent_admit_nothing(kind: str) -> None:
    facts = look(LINES[kind])
    for security, ask in product(SECURITY, ASK):
        under = policy(Placement.SANDBOX, security=security, ask=ask)
        strange = (
            *entries(Placement.HOST),
            AllowlistEntry("/usr/bin/rg", agent="other"),
            AllowlistEntry("/usr/bin/ls", agent="Main"),
        )
        with_strange, without = (
            decide(facts, under, these, Placement.SANDBOX, env=(), seen_before=False)
            for these in (strange, ())
        )
        assert with_strange == without


@pytest.mark.parametrize("kind", LINES)
def test_what_is_stated_beside_the_configuration_only_tightens(kind: str) -> None:
    facts = look(LINES[kind])
    for security, ask, stated_security, stated_ask in product(SECURITY, ASK, (None, *SECURITY), (None, *ASK)):
        under = policy(security=security, ask=ask)
        by = Tightening(
            Stated(stated_security, "beside") if stated_security else None,
            Stated(stated_ask, "beside") if stated_ask else None,
        )
        beside = tightened(under, by)
        judgements = [
            decide(facts, each, entries(Placement.SANDBOX), Placement.SANDBOX, env=(), seen_before=False)
            for each in (under, beside)
            if each is not None
        ]
        answer = str(together(judgements).decision.effect)
        strict = min(security, stated_security or security, key=SECURITY.index)
        alone = expected(security, ask, kind, "deny", strict=False)
        other = expected(strict, stated_ask or ask, kind, "deny", strict=False)
        assert answer == max(alone, other, key=ORDER.index), (security, ask, stated_security, stated_ask)
        if answer != alone:
            sources = {each.source for each in together(judgements).decisions}
            assert sources & {"beside", "built-in"}


def test_what_changes_nothing_costs_no_second_judgement() -> None:
    under = policy(security="allowlist", ask="on-miss")
    assert tightened(under, Tightening()) is None
    assert tightened(under, Tightening(Stated("full", "x"), Stated("on-miss", "x"))) is None


def test_always_is_offered_only_where_each_policy_offers_it() -> None:
    facts, under = look("ls"), policy()
    beside = tightened(under, Tightening(ask=Stated("always", "beside")))
    assert beside is not None
    first, second = (
        decide(facts, each, (), Placement.SANDBOX, env=(), seen_before=False) for each in (under, beside)
    )
    assert first.always.entries
    joined = together([first, second]).always
    assert joined.entries == ()
    assert joined.why
