"""The composition root: every part is made here, in order, and ended here in reverse."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from adapters.channels.web.adapter import WebChannel
from adapters.ingress.unix_socket import UnixSocketIngress
from adapters.parsers.pool import ParserPool
from adapters.resolvers.filesystem import FilesystemResolver
from adapters.resolvers.names import SystemNameResolver
from adapters.runners.bubblewrap import BubblewrapRunner
from adapters.runners.exchanges import exchanges
from adapters.runners.guardian import Guardian
from adapters.runners.host import HostRunner
from adapters.runners.leftovers import kill_leftovers
from adapters.runners.spool import remove_spools, spooled
from adapters.stores.sqlite import open_store
from bot import registry
from bot.agent_socket import open_agent_socket
from bot.clock import SystemClock
from bot.config import LoadedConfig
from bot.health import ChannelHealth
from bot.home import Hold, Home, operator_token, write_secret
from bot.live import Live
from bot.passphrase import PassphraseFile
from bot.reload import Reloaded
from bot.routing import Routing
from bot.site import look_anew, run_users, settled, survey
from bot.tasks import owned
from bot.version import version
from bot.watch import Watch
from bot.witness import WatchedRunner
from core.approvals.cleanup import as_is, cleaned_up
from core.approvals.conversation import Conversation, Switches
from core.approvals.courier import Courier
from core.approvals.entries import AllowlistEntries, Surroundings
from core.approvals.flood import FloodControl
from core.approvals.herald import Addresses, Herald
from core.approvals.ledger import Ledger
from core.approvals.notices import cut_off_text
from core.approvals.pairing import Pairing
from core.approvals.permissions import Permissions
from core.approvals.recovery import cut_off, recover
from core.approvals.retention import Retention
from core.approvals.rules import Rulebook
from core.approvals.service import Approvals
from core.config import Config, UnconfinedHost
from core.console import Daemon, OperatorConsole
from core.credentials import Credentials
from core.desks import OperatorDesks
from core.directives import Directives
from core.elevated.authority import trusted_anywhere
from core.elevations import Elevations
from core.elevator import Elevator
from core.errors import RunError, StartError
from core.gate import Gate
from core.judge import Judge
from core.model.command import Placement
from core.model.principal import Reviewer
from core.model.request import AuditEvent
from core.passphrase.guard import PassphraseGuard
from core.ports import Channel, Clock, NameResolver, Runner, Store
from core.registrar import Registrar
from core.runs import Runs
from core.session_console import SessionConsole
from core.session_modes import SessionModesConsole

LONGEST_ENDING_S = 3.0  # for runs when the daemon stops; an end not recorded by then is told by the next one
_DAY_S = 86_400.0  # for so long the page tells that Sayso ended unasked

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ready:
    """What the daemon tells once it serves; `reload` reads the configuration again."""

    socket: Path
    agent_socket: Path | None
    page: str | None
    reload: Callable[[str], Awaitable[Reloaded]]


@dataclass(frozen=True, slots=True)
class People:
    """The parts that speak with people."""

    approvals: Approvals
    pairing: Pairing
    routing: Routing
    herald: Herald
    opened: list[str]
    health: ChannelHealth


@dataclass(frozen=True, slots=True)
class Levels:
    """The parts that keep the levels of sessions, and the desks at which they are set."""

    elevations: Elevations
    console: SessionConsole
    directives: Directives


async def assemble(
    stack: AsyncExitStack, loaded: LoadedConfig, read: Callable[[], LoadedConfig], hold: Hold, socket: Path
) -> Ready:
    """Build and start everything on the stack; raises StartError or ConfigError where it cannot.

    `read` reads the configuration again.
    """
    home = hold.home
    parsers, guardian = _beside(stack)
    clock = SystemClock()
    store = await stack.enter_async_context(open_store(home.database))
    credentials = await _credentials(loaded, store, clock, home)
    names = SystemNameResolver()
    stack.callback(names.close)

    def config() -> Config:
        return live.config()

    registrar = Registrar(config, store, clock)
    users: set[int] = set()
    live = Live(loaded, read, _judges(home, socket, names, registrar, parsers, guardian, users), store, clock)
    permissions = Permissions(store, clock, loaded.secrets)
    channels = registry.channels(loaded.config, store, permissions, clock, users)
    page = next((channel for channel in channels if isinstance(channel, WebChannel)), None)
    ledger = Ledger(store, cleaned_up if loaded.config.approvals.exec.cleanup_after_resolve else as_is)
    stack.push_async_callback(ledger.close)

    people = await _people(stack, live, ledger, store, clock, loaded.secrets)
    runs = Runs(ledger, clock)
    runners = _runners(home, live, guardian)
    levels = await _levels(stack, config, store, clock, people)
    kept = levels.elevations
    places = (runs, runners, clock, live.where)
    gate = Gate(live.judge, people.approvals, ledger, store, *places, elevations=kept)
    told: dict[str, str | None] = {"socket": str(socket), "agentSocket": None, "cutOff": None}
    status = _status(home, clock, people, live, told)
    daemon = Daemon(status, page.link if page else None, live.where, _reloading(live))
    console = OperatorConsole(
        store, people.approvals, ledger, runs, credentials, live.judge, clock, daemon, elevations=kept
    )
    passphrase = _passphrase(live, store, clock, home)
    _alarm_and_lock(passphrase, people, console)
    for part in (registrar, live, console, passphrase):
        stack.push_async_callback(part.close)
    switches = _switches(live, console, people.pairing, levels.directives)
    desk = Conversation(people.approvals, store, clock, switches, people.herald.hear)
    _furnish(page, levels, _troubles(people, told, clock))
    await asyncio.to_thread(_loaded, guardian, parsers)
    told["cutOff"] = await _recover(store, ledger, people, clock, hold, loaded.secrets)
    await _open_all(stack, channels, desk, ledger, store, people, clock)
    await _watch_over(stack, people, gate, store, clock)
    await stack.enter_async_context(owned(_retention(store, clock, live, home).run(), "retention"))
    stack.push_async_callback(runs.close, "the daemon was stopped while it ran", LONGEST_ENDING_S)
    entries = AllowlistEntries(store, clock, Surroundings(config, live.where, str(socket), loaded.secrets))
    sessions = (levels.console, SessionModesConsole(store, clock))
    desks = OperatorDesks(console, permissions, people.pairing, registrar, entries, *sessions, passphrase)
    ingress = UnixSocketIngress(socket, credentials, gate, desks)
    agents = await _open_sockets(stack, ingress, console, loaded, home)
    told["agentSocket"] = str(agents) if agents else None
    return Ready(socket, agents, page.address if page else None, live.reload)


def _judges(
    home: Home,
    socket: Path,
    names: NameResolver,
    registrar: Registrar,
    parsers: ParserPool,
    guardian: Guardian,
    users: set[int],
) -> Callable[[LoadedConfig], Judge]:
    """Give what makes judges; `users` come to hold as whom runs are, also those of configurations before."""
    resolver = FilesystemResolver()

    def judge_of(loaded: LoadedConfig) -> Judge:
        registry.check_targets(loaded.config)
        users.update(run_users(loaded.config))
        look_anew()
        site = survey(loaded.config, home.path, loaded.protected_paths, socket=socket, guardian=guardian)
        return Judge(settled(loaded.config), site, resolver, names, registrar.plugins, parsers.parse)

    return judge_of


async def _people(
    stack: AsyncExitStack, live: Live, ledger: Ledger, store: Store, clock: Clock, secrets: tuple[str, ...]
) -> People:
    opened: list[str] = []
    pairing = Pairing(store, clock, lambda: live.config().approvals.exec, registry.place, opened)
    await pairing.load()
    stack.push_async_callback(pairing.close)
    routing = Routing(live.config, opened, lambda: pairing.paired)
    rules = Rulebook(live.config, registry.whose_chat).rules
    flood = FloodControl(clock, lambda: live.config().approvals.exec)
    approvals = Approvals(ledger, store, clock, routing.routes, secrets, rules, flood)
    stack.push_async_callback(approvals.close)
    addresses = Addresses(opened, registry.place, routing.named)
    herald = Herald(store, clock, lambda: live.config().approvals.notices, addresses, secrets)
    ledger.on_commit.append(herald.hear)
    pairing.on_security.append(herald.hear)
    return People(approvals, pairing, routing, herald, opened, ChannelHealth())


def _retention(store: Store, clock: Clock, live: Live, home: Home) -> Retention:
    def retention_ms() -> int:
        return live.config().approvals.retention_ms

    gone, lying = partial(remove_spools, home.output), partial(spooled, home.output)
    return Retention(store, clock, retention_ms, gone, lying)


async def _levels(
    stack: AsyncExitStack, config: Callable[[], Config], store: Store, clock: Clock, people: People
) -> Levels:
    elevations = Elevations(store, clock, config)
    await elevations.load()
    elevator = Elevator(elevations, store, clock, config, people.herald.hear)
    elevator.on_end.append(people.approvals.end_session)
    elevator.announce()
    for part in (elevations, elevator):
        stack.push_async_callback(part.close)
    console = SessionConsole(elevator, elevations, store, clock, registry.place)
    return Levels(elevations, console, Directives(elevator, store, clock, registry.place, people.herald.hear))


def _furnish(page: WebChannel | None, levels: Levels, troubles: Callable[[], list[str]]) -> None:
    """Hand the page what it shows beside questions."""
    if page is not None:
        page.show_troubles(troubles)
        page.show_sessions(levels.console)


def _troubles(people: People, told: Mapping[str, str | None], clock: Clock) -> Callable[[], list[str]]:
    """Say what is wrong: for a day that an end was not asked for, and channels that are not ok."""
    started = clock.monotonic()

    def troubles() -> list[str]:
        cut_off = told["cutOff"] if clock.monotonic() - started < _DAY_S else None
        return [*filter(None, (cut_off,)), *people.health.troubles()]

    return troubles


async def _watch_over(stack: AsyncExitStack, people: People, gate: Gate, store: Store, clock: Clock) -> None:
    """Start the tasks that nobody asks for: notices, the watch over channels, deadlines."""
    watch = Watch(people.health.rows, store, people.herald.hear, clock)
    await stack.enter_async_context(owned(people.herald.run(), "herald"))
    await stack.enter_async_context(owned(watch.run(), "watch over channels"))
    await stack.enter_async_context(owned(people.approvals.keep_deadlines(gate.fallback), "deadlines"))
    await stack.enter_async_context(owned(people.approvals.flood.keep_account(store), "sums of floods"))


async def _credentials(loaded: LoadedConfig, store: Store, clock: Clock, home: Home) -> Credentials:
    local = loaded.config.operator.local
    credentials = Credentials(store, clock, operator_token(home) if local != "off" else None)
    await credentials.load()
    if not await store.agents():
        await credentials.mint("main", "daemon", partial(write_secret, home.agent_token("main")))
    return credentials


def _passphrase(live: Live, store: Store, clock: Clock, home: Home) -> PassphraseGuard:
    file = PassphraseFile(home.passphrase)
    kept = file.required() if live.config().operator.local == "passphrase" else None
    return PassphraseGuard(file, store, clock, lambda: live.config().operator, kept)


def _alarm_and_lock(passphrase: PassphraseGuard, people: People, console: OperatorConsole) -> None:
    passphrase.on_security.append(people.herald.hear)
    console.on_locked.append(passphrase.forget_all)


def _beside(stack: AsyncExitStack) -> tuple[ParserPool, Guardian]:
    """Start what must be there before anything untrusted: processes of our own, the watch for exchanges."""
    parsers = stack.enter_context(ParserPool())
    parsers.start()
    guardian = stack.enter_context(Guardian())
    _hear_of_exchanges()
    return parsers, guardian


def _loaded(guardian: Guardian, parsers: ParserPool) -> None:
    """Wait for the processes beside this one: afterwards what asks or answers may have files exchanged."""
    guardian.wait()
    parsers.wait()


def _hear_of_exchanges() -> None:
    """Open what the runs share while nothing runs yet that could leave none of it."""
    try:
        exchanges()
    except RunError as error:
        log.warning("%s; programs and scripts that others can change are not started until then", error)


def _runners(home: Home, live: Live, guardian: Guardian) -> dict[Placement, Runner]:
    resolver, root = FilesystemResolver(), live.judge().site.workspace_root
    return {
        Placement.SANDBOX: BubblewrapRunner(resolver, home.output, root, guardian),
        Placement.HOST: WatchedRunner(HostRunner(resolver, home.output, root, guardian), live.witness),
    }


async def _recover(
    store: Store, ledger: Ledger, people: People, clock: Clock, hold: Hold, secrets: tuple[str, ...]
) -> str | None:
    """Settle what an earlier daemon left: runs were cut off and are never repeated, questions still wait.

    Where nobody asked that daemon to end, this is recorded, logged and told to people, and returned in words.
    """
    last = await _last_recorded(store)
    await store.append(AuditEvent(clock.now(), "daemon.started", "daemon", None, {"pid": os.getpid()}))
    left = await recover(store, ledger, people.approvals, clock, kill_leftovers)
    words = None
    if hold.cut_off:
        event = cut_off(left, last, clock.now())
        await store.append(event)
        people.herald.hear(event)
        words = cut_off_text(event, secrets)
        log.warning("%s", words)
    hold.up()
    return words


async def _last_recorded(store: Store) -> int | None:
    head, _ = await store.head()
    async with aclosing(store.events(max(0, head - 1))) as events:
        return await anext((link.event.at async for link in events), None)


def _switches(live: Live, console: OperatorConsole, pairing: Pairing, directives: Directives) -> Switches:
    async def lock(reviewer: Reviewer) -> str:
        return str((await console.set_locked(locked=True, reviewer=reviewer))["text"])

    async def status() -> str:
        now = await console.status()
        locked = "locked" if now["locked"] else "not locked"
        return f"Sayso {now['version']}: {now['waiting']} waiting, {now['running']} running, {locked}"

    return Switches(lock, status, pairing.claim, directives, lambda: trusted_anywhere(live.config()))


async def _open_all(
    stack: AsyncExitStack,
    channels: Sequence[Channel],
    desk: Conversation,
    ledger: Ledger,
    store: Store,
    people: People,
    clock: Clock,
) -> None:
    for channel in channels:
        await _open(stack, channel, Courier(channel, store, desk, clock), desk, ledger, people)


async def _open(
    stack: AsyncExitStack,
    channel: Channel,
    courier: Courier,
    desk: Conversation,
    ledger: Ledger,
    people: People,
) -> None:
    """Open a channel and serve it; a chat that cannot be reached is told of, and the others carry on."""
    try:
        await channel.open(desk)
    except StartError as error:
        if not channel.keeps_copies:
            raise
        log.error("%s is not used: %s", channel.name, error)  # noqa: TRY400 - a sentence, not a fault of ours
        people.health.failed(channel.name, str(error))
        return
    people.health.opened(channel)
    stack.push_async_callback(channel.close)
    await courier.tell_again()
    ledger.on_commit.append(courier.wake)
    await stack.enter_async_context(owned(courier.run(), f"courier-{channel.name}"))
    people.opened.append(channel.name)
    people.herald.on_post.append(courier.nudge)
    people.pairing.on_post.append(courier.nudge)


async def _open_sockets(
    stack: AsyncExitStack,
    operators: UnixSocketIngress,
    console: OperatorConsole,
    loaded: LoadedConfig,
    home: Home,
) -> Path | None:
    """Serve agents and the operator; returns where the agents' own socket is, if there is one."""
    agents = await open_agent_socket(operators, loaded.config.daemon.socket, home.path, os.environ)
    if agents is not None:
        console.on_revoked.append(agents.cut_off)
        stack.push_async_callback(agents.close)
    console.on_revoked.append(operators.cut_off)
    await operators.open()
    stack.push_async_callback(operators.close)
    return agents.path if agents is not None else None


def _reloading(live: Live) -> Callable[[Reviewer], Awaitable[dict[str, Any]]]:
    async def reload(reviewer: Reviewer) -> dict[str, Any]:
        actor = f"person:{reviewer.channel}:{reviewer.id}"
        return (await live.reload(actor, answered=True)).to_json()

    return reload


def _held(judge: Judge) -> dict[str, Any]:
    why = judge.site.unheld
    accepted = why is not None and judge.config.exec.unconfined_host is UnconfinedHost.ACCEPT
    return {"held": why is None, "why": why, "accepted": accepted}


def _status(
    home: Home, clock: Clock, people: People, live: Live, told: Mapping[str, str | None]
) -> Callable[[], dict[str, Any]]:
    started, installed = clock.monotonic(), version()

    def status() -> dict[str, Any]:
        return {
            "version": installed,
            "pid": os.getpid(),
            "home": str(home.path),
            **told,
            "configuration": list(live.loaded().files),
            "piped": list(live.loaded().piped),
            "uptimeSeconds": int(clock.monotonic() - started),
            "channels": list(people.opened),
            "health": people.health.rows(),
            "undecided": list(people.routing.undecided()),
            "host": _held(live.judge()),
        }

    return status
