"""What the operator may call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adapters.ingress import params as p
from adapters.ingress import session_params as s
from adapters.ingress.jsonrpc import Code, RpcError
from adapters.ingress.passphrase_params import SetPassphrase, Unlock
from core.desks import Console, OperatorDesks
from core.model.principal import Reviewer
from core.model.terminal import Seat

Subscribe = Callable[[], Awaitable[None]]

_SIGNS_OF_LIFE = ("version", "uptimeSeconds")


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One call of the operator; `subscribe` starts the events of this connection."""

    desks: OperatorDesks
    reviewer: Reviewer
    subscribe: Subscribe
    seat: Seat

    @property
    def console(self) -> Console:
        """The desk most calls go to."""
        return self.desks.console


Params = Mapping[str, Any]
Result = dict[str, Any] | list[dict[str, Any]]


async def _resolve(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(p.Resolve, params)
    return await ctx.console.resolve(asked.review(ctx.reviewer))


async def _pending(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.console.pending()


async def _history(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.console.history(p.read(p.History, params).query())


async def _show(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.console.show(p.read(p.ById, params).id)


async def _cancel(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.console.cancel(p.read(p.ById, params).id, ctx.reviewer)


async def _explain(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.console.explain(p.read(p.Row, params).row)


async def _tools(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.console.tools(p.read(p.Row, params).row)


async def _audit_tail(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.console.audit_tail(p.read(p.Listing, params).limit)


async def _audit_page(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(p.AuditPage, params)
    return await ctx.console.audit_page(asked.after, asked.limit)


async def _audit_verify(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.console.audit_verify()


async def _agent_add(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.console.add_agent(p.read(p.AgentName, params).agent)


async def _agent_list(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.console.agents()


async def _agent_revoke(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.console.revoke_agent(p.read(p.AgentName, params).agent)


async def _lock(ctx: OperatorCall, params: Params) -> Result:
    locked = p.read(p.Lock, params).locked
    return await ctx.console.set_locked(locked=locked, reviewer=ctx.reviewer)


async def _web_link(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.console.web_link()


async def _status(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    status = await ctx.console.status()
    if ctx.desks.passphrase.admits(ctx.seat):
        return status
    alive = {name: status[name] for name in _SIGNS_OF_LIFE}
    return {**alive, **ctx.desks.passphrase.standing(ctx.seat)}


async def _test_channels(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.console.test_channels(p.read(p.ChannelTest, params).channel)


async def _permissions(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.desks.permissions.standing()


async def _permission_revoke(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.desks.permissions.revoke(p.read(p.ById, params).id, ctx.reviewer)


async def _pairing_invite(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(p.Invite, params)
    return await ctx.desks.pairing.invite(asked.channel, asked.route)


async def _pairing_show(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.desks.pairing.invitation(p.read(p.ById, params).id)


async def _pairing_confirm(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(p.Confirm, params)
    return await ctx.desks.pairing.confirm(asked.id, ctx.reviewer, accepted=asked.accepted)


async def _pairing_people(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.desks.pairing.people()


async def _pairing_unpair(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(p.Unpair, params)
    return await ctx.desks.pairing.unpair(asked.channel, asked.id, asked.route or "", ctx.reviewer)


async def _tools_register(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(p.RegisterTools, params)
    return await ctx.desks.tools.register(asked.plugin, asked.tools, ctx.reviewer)


async def _tools_unregister(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(p.UnregisterTools, params)
    return await ctx.desks.tools.unregister(asked.plugin, ctx.reviewer)


async def _tools_registered(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.desks.tools.registered()


async def _allowlist(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.desks.allowlist.entries(p.read(p.AllowlistListing, params).agent)


async def _allowlist_add(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.desks.allowlist.add(p.read(p.NewEntry, params).entry(), ctx.reviewer)


async def _allowlist_remove(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.desks.allowlist.remove(p.read(p.ById, params).id, ctx.reviewer)


async def _allowlist_import(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(p.ImportDocument, params)
    desk = ctx.desks.allowlist
    if asked.replace:
        return await desk.replace_document(asked.document, None, ctx.reviewer)
    return await desk.bring(asked.document, ctx.reviewer)


async def _approvals_get(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.desks.allowlist.document()


async def _approvals_set(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(p.SetDocument, params)
    return await ctx.desks.allowlist.replace_document(asked.document, asked.base_hash, ctx.reviewer)


async def _session_tighten(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(s.Tighten, params)
    return await ctx.desks.session_modes.tighten(asked.session, asked.security, asked.ask, ctx.reviewer)


async def _session_clear(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.desks.session_modes.clear(p.read(s.BySession, params).session, ctx.reviewer)


async def _sessions_tightened(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.desks.session_modes.tightened()


async def _no_nodes(ctx: OperatorCall, params: Params) -> Result:
    del ctx, params
    why = (
        "there are no nodes: this version runs commands on its own machine; exec.approvals.get is about that"
    )
    raise RpcError(Code.NOT_AVAILABLE, why)


async def _reload(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.console.reload(ctx.reviewer)


async def _subscribe(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    await ctx.subscribe()
    return {"subscribed": True}


async def _sessions(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.desks.sessions.sessions()


async def _elevate(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(s.Elevate, params)
    desk = ctx.desks.sessions
    return await desk.elevate(asked.session, asked.level, asked.for_ms, asked.safe_reason, ctx.reviewer)


async def _session_bind(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(s.BindSession, params)
    return await ctx.desks.sessions.bind(asked.session, asked.channel, asked.to, ctx.reviewer)


async def _session_end(ctx: OperatorCall, params: Params) -> Result:
    return await ctx.desks.sessions.end(p.read(s.BySession, params).session, ctx.reviewer)


async def _unlock(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(Unlock, params)
    return await ctx.desks.passphrase.unlock(ctx.seat, asked.passphrase.get_secret_value(), ctx.reviewer)


async def _forget(ctx: OperatorCall, params: Params) -> Result:
    p.read(p.NoParams, params)
    return await ctx.desks.passphrase.forget(ctx.reviewer)


async def _set_passphrase(ctx: OperatorCall, params: Params) -> Result:
    asked = p.read(SetPassphrase, params)
    old = asked.old.get_secret_value() if asked.old else None
    new = asked.passphrase.get_secret_value()
    return await ctx.desks.passphrase.change(ctx.seat, old, new, ctx.reviewer)


OperatorMethod = Callable[[OperatorCall, Params], Awaitable[Result]]

OPERATOR_METHODS: Mapping[str, OperatorMethod] = {
    "exec.approval.resolve": _resolve,
    "exec.approval.list": _pending,
    "request.history": _history,
    "request.show": _show,
    "request.cancel": _cancel,
    "policy.explain": _explain,
    "policy.tools": _tools,
    "audit.tail": _audit_tail,
    "audit.page": _audit_page,
    "audit.verify": _audit_verify,
    "agent.add": _agent_add,
    "agent.list": _agent_list,
    "agent.revoke": _agent_revoke,
    "lock.set": _lock,
    "web.link": _web_link,
    "daemon.status": _status,
    "channels.test": _test_channels,
    "config.reload": _reload,
    "permission.list": _permissions,
    "permission.revoke": _permission_revoke,
    "pairing.invite": _pairing_invite,
    "pairing.show": _pairing_show,
    "pairing.confirm": _pairing_confirm,
    "pairing.people": _pairing_people,
    "pairing.unpair": _pairing_unpair,
    "tools.register": _tools_register,
    "tools.unregister": _tools_unregister,
    "tools.registered": _tools_registered,
    "events.subscribe": _subscribe,
    "allowlist.list": _allowlist,
    "allowlist.add": _allowlist_add,
    "allowlist.remove": _allowlist_remove,
    "allowlist.import": _allowlist_import,
    "exec.approvals.get": _approvals_get,
    "exec.approvals.set": _approvals_set,
    "exec.approvals.node.get": _no_nodes,
    "exec.approvals.node.set": _no_nodes,
    "session.list": _sessions,
    "session.elevated.set": _elevate,
    "session.bind": _session_bind,
    "session.end": _session_end,
    "session.tighten": _session_tighten,
    "session.clear": _session_clear,
    "session.tightened": _sessions_tightened,
    "operator.unlock": _unlock,
    "operator.forget": _forget,
    "operator.passphrase.set": _set_passphrase,
}

# Two take the passphrase themselves, one only takes rights away, one tells only that the daemon lives.
WITHOUT_PASSPHRASE = frozenset(
    {"operator.unlock", "operator.passphrase.set", "operator.forget", "daemon.status"}
)
