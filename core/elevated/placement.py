"""Where a call runs, sandbox or host, and whether elevation changes the asking (text 002 §13, §14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.config import Config, ExecHost, SandboxBackend, SandboxMode
from core.display import moment
from core.elevated.authority import authority
from core.elevated.levels import Asking, Treatment, treat
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.decision import Decision, Effect, Layer, Obligation
from core.model.elevation import NOT_ELEVATED, Level, Standing

_ONLY_BY_AUTHORISED = frozenset({Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK, Obligation.ELEVATES})
_ONCE_A_PERSON = frozenset({Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK})


@dataclass(frozen=True, slots=True)
class Placed:
    """A placement and the decision that explains it; a denial where there is no such place.

    `standing` is the elevation on which it rests, if any.
    """

    placement: Placement
    decision: Decision
    asking: Asking = Asking.AS_POLICY
    standing: Standing = NOT_ELEVATED


BY_CLIENT: Final = Placed(
    Placement.CLIENT,
    Decision(Layer.ELEVATED, Effect.ALLOW, "the agent's own program runs it", "placement.client", "built-in"),
)


def place(config: Config, call: ToolCall, standing: Standing = NOT_ELEVATED) -> Placed:
    """Settle where a call would run, before anyone is asked.

    No level counts for what the agent's own program runs: it is not in our sandbox to be lifted out of it.
    """
    if call.by_client:
        return BY_CLIENT
    configured = _configured(config, call)
    if configured.decision.rule == _NO_NODE:
        return configured
    wanted = Level(call.elevated) if call.elevated else None
    if wanted not in (None, Level.OFF) and not authority(config, call.agent).enabled:
        return _not_enabled(config, call, configured.placement)
    if standing.asks_only and configured.placement is Placement.SANDBOX:
        standing = NOT_ELEVATED
    treatment = treat(standing.level, wanted, configured.placement)
    if treatment.level is Level.OFF:
        return configured
    decision = _elevated(config, call, standing, treatment, configured)
    rests_on = NOT_ELEVATED if treatment.asking is Asking.BY_AUTHORISED else standing
    return Placed(treatment.placement, decision, treatment.asking, rests_on)


def _elevated(
    config: Config, call: ToolCall, standing: Standing, treatment: Treatment, configured: Placed
) -> Decision:
    if treatment.asking is Asking.BY_AUTHORISED:
        source = authority(config, call.agent).source
        reason = f"the agent asks for elevated {treatment.level}: only a person in {source} may allow it"
        return _decision(Effect.ASK, reason, "elevated.requested", source, _ONLY_BY_AUTHORISED)
    by = _set_by(standing)
    rule, where = f"elevated.{treatment.level}", "it runs on the host"
    if configured.placement is not Placement.SANDBOX:
        where = "it runs on the host anyway, where elevated mode is not needed"
    if treatment.asking is Asking.ALWAYS:
        reason = f"{where}, and elevated ask has every command asked about ({by})"
        return _decision(Effect.ASK, reason, rule, standing.source, _ONCE_A_PERSON)
    return _decision(Effect.ALLOW, f"{where}: elevated {treatment.level} ({by})", rule, standing.source)


def skipping(placed: Placed, effect: Effect) -> Decision | None:
    """Answer a question by elevated full, which skips people and nothing else; None where it cannot."""
    if placed.asking is not Asking.NEVER or effect is not Effect.ASK:
        return None
    reason = f"nobody is asked: elevated full ({_set_by(placed.standing)})"
    return _decision(Effect.ALLOW, reason, "elevated.full", placed.standing.source)


def _set_by(standing: Standing) -> str:
    elevation = standing.elevation
    if elevation is None:
        return f"by {standing.source}"
    if elevation.once:
        return f"for this command, by {elevation.by}"
    until = f" until {moment(elevation.until)}" if elevation.until is not None else ""
    return f"set by {elevation.by} at {moment(elevation.set_at)}{until}"


def _not_enabled(config: Config, call: ToolCall, placement: Placement) -> Placed:
    source = authority(config, call.agent).source
    reason = f"elevated mode is off ({source} is false), so {call.elevated} cannot be asked for"
    return Placed(placement, _decision(Effect.DENY, reason, "elevated.disabled", source))


_NO_NODE = "placement.no-node"


def _configured(config: Config, call: ToolCall) -> Placed:
    """Settle where a call runs without any elevation; a claim can only move it into the sandbox."""
    host, source = _exec_host(config, call.agent)
    if host is ExecHost.NODE:
        reason = "there are no nodes in this version; set tools.exec.host to sandbox or gateway"
        return Placed(Placement.HOST, _decision(Effect.DENY, reason, _NO_NODE, source))
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


def _decision(
    effect: Effect, reason: str, rule: str, source: str, obligations: frozenset[Obligation] = frozenset()
) -> Decision:
    return Decision(Layer.ELEVATED, effect, reason, rule, source, obligations)
