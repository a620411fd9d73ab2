"""The composition root: every part is made here, in order, and ended here in reverse."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.channels.web.adapter import WebChannel
from adapters.ingress.unix_socket import UnixSocketIngress
from adapters.resolvers.filesystem import FilesystemResolver
from adapters.resolvers.names import SystemNameResolver
from adapters.runners.bubblewrap import BubblewrapRunner
from adapters.runners.host import HostRunner
from adapters.runners.leftovers import kill_leftovers
from adapters.stores.sqlite import open_store
from bot import registry
from bot.clock import SystemClock
from bot.config import LoadedConfig
from bot.health import ChannelHealth
from bot.home import Home, operator_token, write_secret
from bot.routing import Routing
from bot.site import survey
from bot.version import version
from bot.watch import Watch
from core.approvals import lifecycle
from core.approvals.cleanup import as_is, cleaned_up
from core.approvals.conversation import Conversation, Switches
from core.approvals.courier import Courier
from core.approvals.herald import Addresses, Herald
from core.approvals.ledger import Ledger
from core.approvals.pairing import Pairing
from core.approvals.permissions import Permissions
from core.approvals.service import Approvals
from core.config import Config
from core.console import Daemon, OperatorConsole
from core.credentials import Credentials
from core.desks import OperatorDesks
from core.errors import StartError
from core.gate import Gate
from core.judge import Judge, Site
from core.model.command import Placement
from core.model.principal import Reviewer
from core.model.request import AuditEvent, State
from core.ports import Channel, Clock, Runner, Store
from core.runs import Runs

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ready:
    """What the daemon tells once it serves."""

    socket: Path
    page: str | None


async def assemble(stack: AsyncExitStack, loaded: LoadedConfig, home: Home, socket: Path) -> Ready:
    """Build and start everything on the stack; raises StartError or ConfigError where it cannot."""
    config, clock = loaded.config, SystemClock()
    store = await stack.enter_async_context(open_store(home.database))
    credentials = await _credentials(loaded, store, clock, home)
    registry.check_targets(config)
    permissions = Permissions(store, clock, loaded.secrets)
    channels = registry.channels(config, store, permissions, clock)
    ledger = Ledger(store, cleaned_up if config.approvals.exec.cleanup_after_resolve else as_is)
    stack.push_async_callback(ledger.close)

    opened: list[str] = []
    pairing = Pairing(store, clock, config.approvals.exec, registry.place, opened)
    await pairing.load()
    stack.push_async_callback(pairing.close)
    routing = Routing(config, opened, lambda: pairing.paired)
    approvals = Approvals(ledger, store, clock, routing.routes, loaded.secrets)
    site = survey(config, home.path, loaded.protected_paths)
    names = SystemNameResolver()
    stack.callback(names.close)
    judge = Judge(config, site, FilesystemResolver(), names)
    runs = Runs(ledger, clock)
    gate = Gate(judge, approvals, ledger, store, runs, _runners(home, site), clock, loaded.where)
    page = next((channel for channel in channels if isinstance(channel, WebChannel)), None)
    health = ChannelHealth()
    if page is not None:
        page.show_troubles(health.troubles)
    daemon = Daemon(_status(home, opened, clock, health, routing), page.link if page else None, loaded.where)
    console = OperatorConsole(store, approvals, ledger, runs, credentials, judge, clock, daemon)
    addresses = Addresses(opened, registry.place, routing.named)
    herald = Herald(store, clock, config.approvals.notices, addresses, loaded.secrets)
    ledger.on_commit.append(herald.hear)
    pairing.on_security.append(herald.hear)
    desk = Conversation(approvals, store, clock, _switches(config, console, pairing), herald.hear)

    await _recover(store, ledger, approvals, clock)
    for channel in channels:
        courier = Courier(channel, store, desk, clock)
        if await _open(stack, channel, courier, desk, ledger, health):
            opened.append(channel.name)
            herald.on_post.append(courier.nudge)
            pairing.on_post.append(courier.nudge)
    await stack.enter_async_context(_task(herald.run(), "herald"))
    watch = Watch(health.rows, store, herald.hear, clock)
    await stack.enter_async_context(_task(watch.run(), "watch over channels"))
    await stack.enter_async_context(_task(approvals.keep_deadlines(gate.fallback), "deadlines"))
    stack.push_async_callback(runs.close, "the daemon was stopped while it ran")

    desks = OperatorDesks(console, permissions, pairing)
    ingress = UnixSocketIngress(socket, credentials, gate, desks)
    await ingress.open()
    stack.push_async_callback(ingress.close)
    return Ready(socket, page.address if page else None)


async def _credentials(loaded: LoadedConfig, store: Store, clock: Clock, home: Home) -> Credentials:
    local = loaded.config.operator.local
    if local == "passphrase":
        raise StartError("operator.local: passphrase is not available in this version; use token or off")
    credentials = Credentials(store, clock, operator_token(home) if local == "token" else None)
    await credentials.load()
    if not await store.agents():
        write_secret(home.agent_token("main"), await credentials.mint("main", "daemon"))
    return credentials


def _runners(home: Home, site: Site) -> dict[Placement, Runner]:
    resolver = FilesystemResolver()
    return {
        Placement.SANDBOX: BubblewrapRunner(resolver, home.output, site.workspace_root),
        Placement.HOST: HostRunner(resolver, home.output, site.workspace_root),
    }


async def _recover(store: Store, ledger: Ledger, approvals: Approvals, clock: Clock) -> None:
    """Settle what an earlier daemon left: runs were cut off and are never repeated, questions still wait."""
    await store.append(AuditEvent(clock.now(), "daemon.started", "daemon", None, {"pid": os.getpid()}))
    for request in await store.in_states(State.RUNNING):
        why = "the daemon ended while it ran"
        kill_leftovers(request.id)
        await ledger.commit(lifecycle.interrupted(request, why, clock.now()))
    await approvals.recover()


def _switches(config: Config, console: OperatorConsole, pairing: Pairing) -> Switches:
    async def lock(reviewer: Reviewer) -> str:
        return str((await console.set_locked(locked=True, reviewer=reviewer))["text"])

    async def status() -> str:
        now = await console.status()
        locked = "locked" if now["locked"] else "not locked"
        return f"Sayso {now['version']}: {now['waiting']} waiting, {now['running']} running, {locked}"

    return Switches(lock, status, pairing.claim, config.tools.elevated.allow_from)


async def _open(
    stack: AsyncExitStack,
    channel: Channel,
    courier: Courier,
    desk: Conversation,
    ledger: Ledger,
    health: ChannelHealth,
) -> bool:
    """Open a channel and serve it; a chat that cannot be reached is told of, and the others carry on."""
    try:
        await channel.open(desk)
    except StartError as error:
        if not channel.keeps_copies:
            raise
        log.error("%s is not used: %s", channel.name, error)  # noqa: TRY400 - a sentence, not a fault of ours
        health.failed(channel.name, str(error))
        return False
    health.opened(channel)
    stack.push_async_callback(channel.close)
    await courier.tell_again()
    ledger.on_commit.append(courier.wake)
    await stack.enter_async_context(_task(courier.run(), f"courier-{channel.name}"))
    return True


@asynccontextmanager
async def _task(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Own a background task: a fault is logged at once, and its end is awaited."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_report_fault)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _report_fault(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (fault := task.exception()) is not None:
        log.critical("%s ended by a fault: %r", task.get_name(), fault, exc_info=fault)


def _status(home: Home, opened: Sequence[str], clock: Clock, health: ChannelHealth, routing: Routing) -> Any:  # noqa: ANN401 - a closure for Daemon
    started = clock.monotonic()

    def status() -> dict[str, Any]:
        return {
            "version": version(),
            "pid": os.getpid(),
            "home": str(home.path),
            "uptimeSeconds": int(clock.monotonic() - started),
            "channels": list(opened),
            "health": health.rows(),
            "undecided": list(routing.undecided()),
        }

    return status
