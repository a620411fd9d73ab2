"""The methods that other programs rely on: each is answered, by one role only."""

from __future__ import annotations

from adapters.ingress.agent_methods import AGENT_METHODS
from adapters.ingress.operator_methods import OPERATOR_METHODS

AGENT = {
    "exec.run",
    "tool.check",
    "exec.approval.request",
    "exec.approval.waitDecision",
    "exec.approval.withdraw",
    "session.describe",
}
OPERATOR = {
    "exec.approval.resolve",
    "exec.approval.list",
    "exec.approvals.get",
    "exec.approvals.set",
    "exec.approvals.node.get",
    "exec.approvals.node.set",
    "session.elevated.set",
    "policy.explain",
    "policy.tools",
    "audit.tail",
    "events.subscribe",
}


def test_every_agent_method_is_there():
    assert AGENT_METHODS.keys() >= AGENT


def test_every_operator_method_is_there():
    assert OPERATOR_METHODS.keys() >= OPERATOR


def test_no_method_belongs_to_both_roles():
    assert not AGENT_METHODS.keys() & OPERATOR_METHODS.keys()
