"""What standing answers mean for a decision."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.approvals.standing import forbidding, permitting
from core.model.decision import Decision, Effect, Layer, Obligation, strictest
from core.model.principal import Reviewer
from core.model.standing import DenyRule, StandingPermission

ANN = Reviewer("telegram", "5", "Ann")
PERMISSION = StandingPermission("1a2b3c4d-0", "main", "agent:main:main", "b" * 64, "ls", (ANN,), 0, 1_000)
RULE = DenyRule("5e6f7a8b-0", "main", "/usr/bin/rm -rf build", ANN, 0, "keep it")

decisions = st.builds(
    Decision,
    st.sampled_from(Layer),
    st.sampled_from(Effect),
    st.just("because"),
    st.sampled_from(["a", "b"]),
    obligations=st.frozensets(st.sampled_from(Obligation)),
)
traces = st.lists(decisions, max_size=6)


@given(traces)
def test_a_permission_answers_questions_alone_and_none_that_counts_once(trace):
    answer = permitting(PERMISSION, trace)
    asks = strictest(trace).effect is Effect.ASK
    once = any(Obligation.NEVER_REMEMBER in decision.obligations for decision in trace)
    assert (answer is not None) == (asks and not once)
    if answer is not None:
        assert answer.effect is Effect.ALLOW
        assert "Ann (telegram:5)" in answer.reason


@given(traces)
def test_without_a_permission_every_question_stays(trace):
    assert permitting(None, trace) is None


@given(st.text(), st.sets(st.text(), max_size=5))
def test_a_deny_rule_denies_what_is_spelled_like_it_and_nothing_else(command, spellings):
    rule = replace(RULE, command=command)
    answer = forbidding([rule], spellings)
    assert (answer is not None) == (command in spellings)
    assert answer is None or answer.effect is Effect.DENY


def test_the_denial_says_who_when_why_and_where_it_is_kept():
    answer = forbidding([RULE], {RULE.command})
    assert answer.reason == (
        "Ann (telegram:5) denied exactly this always, on 1970-01-01 00:00:00 UTC: keep it"
    )
    assert answer.source == "sayso permissions (5e6f7a8b)"
