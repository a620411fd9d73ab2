"""Where a call runs: sandbox or host (text 002 §13, §14). A claim can only move it into the sandbox."""

from __future__ import annotations

from dataclasses import dataclass

from core.config import Config, ExecHost, SandboxBackend, SandboxMode
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.decision import Decision, Effect, Layer


@dataclass(frozen=True, slots=True)
class Placed:
    """A placement and the decision that explains it; a denial where there is no such place."""

    placement: Placement
    decision: Decision


def place(config: Config, call: ToolCall) -> Placed:
    """Settle where a call would run, before anyone is asked."""
    if call.elevated not in (None, "off"):
        return Placed(
            Placement.HOST,
            _decision(
                Effect.DENY,
                f"elevated mode ({call.elevated}) is not available in this version; ask without --elevated",
                "elevated.unavailable",
                "tools.elevated",
            ),
        )
    host, source = _exec_host(config, call.agent)
    if host is ExecHost.NODE:
        reason = "there are no nodes in this version; set tools.exec.host to sandbox or gateway"
        return Placed(Placement.HOST, _decision(Effect.DENY, reason, "placement.no-node", source))
    if host is ExecHost.GATEWAY and not _must_be_confined(config, call):
        return _on_host(f"{source} is gateway", source)
    return _by_mode(config, call)


def _by_mode(config: Config, call: ToolCall) -> Placed:
    overrides = config.agent(call.agent).sandbox
    mode, source = config.sandboxing.mode, "sandboxing.mode"
    if overrides.mode is not None:
        mode, source = overrides.mode, f"agents.{call.agent}.sandbox.mode"
    if overrides.enabled is False:
        mode, source = SandboxMode.OFF, f"agents.{call.agent}.sandbox.enabled"
    depth = max(call.depth, config.agent(call.agent).pin.depth)
    confined = mode is SandboxMode.ALL or (mode is SandboxMode.NON_MAIN and depth > 0)
    if not confined and not _must_be_confined(config, call):
        return _on_host(f"{source} is {mode.value}", source)
    backend = overrides.backend or config.sandboxing.backend
    if backend is not SandboxBackend.BUBBLEWRAP:
        reason = f"this version has no {backend.value} sandbox; set sandboxing.backend to bubblewrap"
        decision = _decision(Effect.DENY, reason, "placement.no-backend", "sandboxing.backend")
        return Placed(Placement.SANDBOX, decision)
    return Placed(
        Placement.SANDBOX,
        _decision(Effect.ALLOW, f"it runs in the {backend.value} sandbox", "placement.sandbox", source),
    )


def _must_be_confined(config: Config, call: ToolCall) -> bool:
    return bool(call.claims.sandboxed or config.agent(call.agent).pin.sandboxed)


def _exec_host(config: Config, agent: str) -> tuple[ExecHost, str]:
    own = config.agent(agent).exec.host
    return (own, f"agents.{agent}.exec.host") if own else (config.exec.host, "tools.exec.host")


def _on_host(why: str, source: str) -> Placed:
    decision = _decision(Effect.ALLOW, f"it runs on the host, because {why}", "placement.host", source)
    return Placed(Placement.HOST, decision)


def _decision(effect: Effect, reason: str, rule: str, source: str) -> Decision:
    return Decision(Layer.ELEVATED, effect, reason, rule, source)
