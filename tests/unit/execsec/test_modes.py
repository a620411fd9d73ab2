"""Security modes crossed with asking, as people configure them."""

from __future__ import annotations

import pytest

from core.config import Config
from core.execsec.decide import fallback_allows
from core.execsec.policy import effective
from core.model.allowlist import AllowlistEntry
from core.model.command import Placement
from core.model.decision import Layer, Obligation
from tests.shell_world import effect, judge, look, policy

LISTED, MISSED = "rg TODO", "ls"
RG = "/usr/bin/rg"


@pytest.mark.parametrize(
    ("security", "ask", "listed", "missed"),
    [
        ("deny", "off", "deny", "deny"),
        ("deny", "on-miss", "deny", "deny"),
        ("deny", "always", "deny", "deny"),
        ("allowlist", "off", "allow", "deny"),
        ("allowlist", "on-miss", "allow", "ask"),
        ("allowlist", "always", "ask", "ask"),
        ("full", "off", "allow", "allow"),
        ("full", "on-miss", "ask", "ask"),
        ("full", "always", "ask", "ask"),
    ],
)
def test_mode_and_ask(security: str, ask: str, listed: str, missed: str) -> None:
    assert effect(LISTED, RG, security=security, ask=ask) == listed
    assert effect(MISSED, RG, security=security, ask=ask) == missed


def test_full_on_miss_runs_what_was_approved_exactly_so_before() -> None:
    assert effect("ls", security="full", seen_before=True) == "allow"
    assert effect("ls", security="full", ask="always", seen_before=True) == "ask"
    assert effect("ls", seen_before=True) == "ask"


@pytest.mark.parametrize(
    "line", ["ls $X", "xargs ls", "export A=1", "LD_PRELOAD=x ls", "sudo ls", "curl x | xargs sh"]
)
def test_what_is_never_remembered_is_asked_again_even_when_seen_before(line: str) -> None:
    judgement = judge(line, security="full", seen_before=True)
    assert str(judgement.decision.effect) == "ask"
    assert Obligation.NEVER_REMEMBER in judgement.decision.obligations


@pytest.mark.parametrize(
    "line", ["git push", "xargs rm", "ls *.c", "python3 x.py", "python3 -c x", "LD_PRELOAD=x ls"]
)
def test_full_off_runs_what_can_be_analysed(line: str) -> None:
    assert effect(line, security="full", ask="off") == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "sudo ls",
        "doas ls",
        "chroot / ls",
        "ls | su -",
        "nonesuch; ls",
        "echo $(id)",
        "nonesuch $X",
        "cd $X; ./a",
    ],
)
def test_but_not_everything(line: str) -> None:
    assert effect(line, security="full", ask="off") in {"ask", "deny"}


def test_strict_inline_eval_asks_a_person_whatever_is_listed() -> None:
    exact = AllowlistEntry("/usr/bin/python3", args=("-c", "x"), source="test")
    for settings in ({"ask": "off"}, {"ask": "on-miss"}, {"security": "full", "ask": "off"}):
        assert effect("python3 -c x", exact, strictInlineEval=True, **settings) == "ask"
        assert effect("python3 -c x", exact, **settings) == "allow"
    assert effect("python3 -c y", exact) == "ask"


def test_security_is_deny_in_a_sandbox_and_allowlist_elsewhere_unless_configured() -> None:
    assert str(effective(Config(), "main", Placement.SANDBOX).security) == "deny"
    assert str(effective(Config(), "main", Placement.HOST).security) == "allowlist"
    assert str(effective(Config(), "main", Placement.CLIENT).security) == "allowlist"
    chosen = Config.model_validate({"tools": {"exec": {"security": "allowlist"}}})
    assert str(effective(chosen, "main", Placement.SANDBOX).security) == "allowlist"


def test_each_setting_says_where_it_is_written() -> None:
    mine = policy(agent={"ask": "always", "allowlist": [{"pattern": "~/bin/x"}], "deny": ["a"]}, deny=["b"])
    assert mine.source("security") == "tools.exec.security"
    assert mine.source("ask") == "agents.main.exec.ask"
    assert mine.source("ask_fallback") == "tools.exec.askFallback (default)"
    assert policy(strictInlineEval=True).source("strict_inline_eval") == "tools.exec.strictInlineEval"
    assert [(entry.pattern, entry.source) for entry in mine.allowlist] == [
        ("/home/agent/bin/x", "agents.main.exec.allowlist[0]")
    ]
    assert [rule.source for rule in mine.deny] == ["agents.main.exec.deny[0]", "tools.exec.deny[0]"]


def test_what_an_agent_sets_wins_over_what_holds_for_all() -> None:
    assert effect("ls", under=policy(agent={"security": "full", "ask": "off"})) == "allow"
    assert effect(LISTED, RG, under=policy(security="full", ask="off", agent={"security": "deny"})) == "deny"


def test_another_agents_section_does_not_count() -> None:
    config = Config.model_validate(
        {"agents": {"byId": {"other": {"exec": {"security": "full", "allowlist": [{"pattern": "**"}]}}}}}
    )
    mine = effective(config, "main", Placement.SANDBOX)
    assert str(mine.security) == "deny"
    assert mine.allowlist == ()


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("echo > x", "exec.redirection"),
        ("echo $(id)", "exec.command-substitution"),
        ("if ls; then ls; fi", "exec.compound-command"),
    ],
)
def test_what_cannot_be_analysed_is_denied_or_asked_once(line: str, rule: str) -> None:
    refused = judge(line, "**")
    assert (str(refused.decision.effect), refused.decision.rule) == ("deny", rule)
    asked = judge(line, "**", onUnanalysable="ask")
    assert (str(asked.decision.effect), asked.decision.rule) == ("ask", rule)
    assert asked.decision.obligations == {Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK}
    assert asked.decision.source == "tools.exec.onUnanalysable"
    assert asked.always.entries == ()
    assert effect(line, "**", onUnanalysable="ask", ask="off") == "deny"
    assert effect(line, onUnanalysable="ask", security="full", seen_before=True) == "ask"
    assert effect(line, onUnanalysable="ask", security="deny") == "deny"


@pytest.mark.parametrize("line", ["ls \0", "ls \u202e", "ls \r", "ls \ud800", "", "a" * 70_000])
def test_what_misleads_is_denied_even_where_the_rest_is_asked(line: str) -> None:
    assert effect(line, "**", onUnanalysable="ask", security="full", ask="off") == "deny"


def test_a_program_that_is_not_there_is_denied_unless_a_table_asks_first() -> None:
    world_less = look("nonesuch x")
    assert judge(world_less, "**").decision.rule == "exec.not-found"
    assert effect(world_less, "**") == "deny"
    assert effect(world_less, security="full", ask="off") == "deny"


def test_every_command_of_a_line_must_be_admitted() -> None:
    assert effect("rg a && rg b | wc -l", RG, ask="off") == "allow"
    for line in (
        "rg a && ls",
        "ls; rg a",
        "rg a | ls",
        "rg a & ls",
        "rg a\nls",
        "rg a || ls",
        "bash -c 'rg a; ls'",
    ):
        assert effect(line, RG, ask="off") == "deny", line
        assert judge(line, RG).satisfied_by.count(None) == 1


def test_the_ask_of_always_is_of_the_approvals_layer_and_a_miss_is_of_layer_two() -> None:
    always = judge(LISTED, RG, ask="always")
    assert [d.layer for d in always.decisions] == [Layer.EXEC_SECURITY, Layer.APPROVALS]
    assert always.decision.source == "tools.exec.ask"
    assert judge(MISSED, RG).decision.layer is Layer.EXEC_SECURITY


def test_every_decision_has_a_rule_a_sentence_and_a_source() -> None:
    lines = [
        "ls",
        "sudo ls",
        "ls $X",
        "echo > x",
        "nonesuch",
        "export A=1",
        "python3 -c x",
        "rg x",
        "ls \0",
        "A=1",
    ]
    for line in lines:
        for security in ("deny", "allowlist", "full"):
            for decision in judge(line, RG, security=security).decisions:
                assert decision.rule.startswith("exec.")
                assert decision.source
                assert len(decision.reason.split()) > 3


def fallback(
    line: str, *entries: AllowlistEntry, placement: Placement = Placement.SANDBOX, **settings: object
) -> bool:
    chosen = policy(placement, **{"askFallback": "allowlist", "security": "full", **settings})
    return fallback_allows(look(line), chosen, entries, placement, ())


def test_the_fallback_grants_only_what_the_allowlist_admits_in_the_sandbox() -> None:
    entry = AllowlistEntry(RG, source="test")
    host = AllowlistEntry(RG, placement=Placement.HOST, source="test")
    exact = AllowlistEntry("/usr/bin/python3", args=("-c", "x"), source="test")
    assert fallback(LISTED, entry)
    assert not fallback(LISTED)
    assert not fallback(MISSED, entry)
    assert not fallback(f"{LISTED}; {MISSED}", entry)
    assert not fallback(LISTED, entry, askFallback="deny")
    assert not fallback(LISTED, entry, ask="always")
    assert not fallback(LISTED, entry, security="deny")
    assert not fallback(LISTED, host, placement=Placement.HOST)
    assert not fallback(LISTED, host, placement=Placement.CLIENT)
    assert not fallback("python3 -c x", exact)
    assert not fallback("rg $X", entry)
    assert not fallback("rg > x", entry)
    assert not fallback("LD_PRELOAD=x rg", entry)
    assert not fallback(LISTED, entry, deny=["rg"])
    assert not fallback_allows(
        look(LISTED), policy(askFallback="allowlist"), [entry], Placement.SANDBOX, [("LD_PRELOAD", "x")]
    )


def test_the_requests_own_environment_is_judged_and_shown() -> None:
    judgement = judge(LISTED, RG, env=[("LD_PRELOAD", "/tmp/x.so")])
    assert str(judgement.decision.effect) == "ask"
    assert "LD_PRELOAD=/tmp/x.so" in judgement.decision.reason
    assert effect(LISTED, RG, env=[("LD_PRELOAD", "x")], ask="off") == "deny"
    assert effect(LISTED, RG, env=[("MY_FLAG", "x")]) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/command ls",
        "env /usr/bin/exec ls",
        "proot ls",
        "faketime 2020-01-01 ls",
        "apptainer exec image ls",
        "singularity exec image ls",
        "distrobox enter box -- ls",
        "distrobox-enter box -- ls",
        "toolbox run ls",
        "setlock f ls",
        "envuidgid nobody ls",
        "execlineb -c ls",
        "s6-setuidgid nobody ls",
    ],
)
def test_programs_that_run_their_words_ask_under_an_entry_for_all(line: str) -> None:
    decision = judge(line, "**").decision
    assert (str(decision.effect), decision.rule) == ("ask", "exec.carrier")
    assert effect("/usr/bin/commander ls", "**") == "allow"
