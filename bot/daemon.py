"""The daemon: start in order, say `ready`, serve, stop in reverse."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import resource
import selectors
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bot.config import LoadedConfig, Overrides, load
from bot.config.standing import refuse_exposed
from bot.home import Hold, Home, held, look_again, prepare
from bot.options import UpOptions
from bot.sealed import seal
from bot.tasks import owned
from bot.turns import take_turns
from bot.undumpable import close_to_other_processes
from bot.usable import refuse_bad_socket, warnings_of_machine
from bot.wiring import Ready, assemble
from core.errors import ConfigError, StartError, StoreError

EXIT_CONFIG = 78
SLOWEST_STOP_S = 10.0
MOST_FILES = 8192

log = logging.getLogger(__name__)


def up(options: UpOptions) -> int:
    """Run the daemon in the foreground until a signal ends it; returns the exit status."""
    open_because = close_to_other_processes()
    try:
        loaded = _read(options)
        refuse_bad_socket(loaded, state_directory())
        home = prepare(state_directory())
        read = partial(_in_its_place, home, _again(options, loaded))
        _log_to_stderr(loaded)
        if open_because:
            log.warning(
                "other processes of this user can read the daemon's environment and memory, with every token "
                "in them: prctl(PR_SET_DUMPABLE) failed (%s); give Sayso a user of its own",
                open_because,
            )
        _take_files()
        with held(home) as hold:
            socket = Path(options.socket) if options.socket else home.socket
            _run(_serve(loaded, read, hold, socket), hold)
    except (ConfigError, StartError, StoreError) as error:
        print(f"sayso: cannot start: {error}", file=sys.stderr)  # noqa: T201 - the last words of a daemon
        return EXIT_CONFIG
    return 0


def _run(serving: Coroutine[Any, Any, None], hold: Hold) -> None:
    try:
        with asyncio.Runner(loop_factory=_loop) as runner:
            runner.run(serving)
    except (ConfigError, StartError, StoreError):
        hold.undo()
        raise


def _loop() -> asyncio.AbstractEventLoop:
    # epoll's watches are counted for the whole user, so that one of its runs could take them all.
    return asyncio.SelectorEventLoop(selectors.PollSelector())


def state_directory() -> Path:
    """Return where the state lies; raises StartError where nothing says so."""
    try:
        return Path(os.environ.get("SAYSO_HOME") or Path.home() / ".sayso").absolute()
    except RuntimeError:
        raise StartError(
            f"uid {os.geteuid()} has no account on this machine and HOME is not set, so there is no home for "
            "Sayso's state; set SAYSO_HOME to a directory of this user"
        ) from None


def _take_files() -> None:
    """Let more connections wait than a login is given files for; the hard limit stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _read(options: UpOptions, *, pipes: bool = True) -> LoadedConfig:
    paths = [Path(path) for path in options.config]
    loaded = load(paths, env=os.environ, overrides=_overrides(options), pipes=pipes)
    refuse_exposed(loaded)
    return loaded


def _in_its_place(home: Home, read: Callable[[], LoadedConfig]) -> LoadedConfig:
    """Read again, unless the state directory is another one by now."""
    found = read()
    try:
        look_again(home)
    except StartError as error:
        raise ConfigError(str(error)) from None
    return found


def _again(options: UpOptions, loaded: LoadedConfig) -> Callable[[], LoadedConfig]:
    """Return how the configuration is read again: by the names of its files, and never from a pipe.

    A descriptor that was named at the start (`/dev/stdin`) is of a file that may have been replaced since.
    """
    if not loaded.piped:
        return partial(_read, replace(options, config=tuple(map(Path, loaded.files))), pipes=False)
    pipe = loaded.piped[0]

    def refuse() -> LoadedConfig:
        raise ConfigError(
            f"{pipe}: this part of the configuration came by a pipe and cannot be read again; nothing has "
            "changed. Keep it in a file, or start Sayso again"
        )

    return refuse


async def _serve(loaded: LoadedConfig, read: Callable[[], LoadedConfig], hold: Hold, socket: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    hung_up = asyncio.Event()
    loop.add_signal_handler(signal.SIGHUP, hung_up.set)
    async with AsyncExitStack() as stack:
        try:
            ready = await _unless_stopped(assemble(stack, loaded, read, hold, socket), stop)
        except (ConfigError, StartError, StoreError):
            hold.ended()
            raise
        if ready is None:
            hold.ended()
            return
        await stack.enter_async_context(owned(_reload_on(hung_up, ready), "reload on SIGHUP"))
        take_turns()
        seal()
        _announce(ready)
        await stop.wait()
        hold.ended()
        log.info("stopping")
        # Being killed is safe at any instant, waiting for ever is not: then say where it hung, and go.
        faulthandler.dump_traceback_later(SLOWEST_STOP_S, exit=True)


async def _unless_stopped(start: Coroutine[Any, Any, Ready], stop: asyncio.Event) -> Ready | None:
    """Start, which may wait for others a while; None where a signal came first."""
    starting = asyncio.create_task(start, name="start")
    stopping = asyncio.create_task(stop.wait(), name="stop while starting")
    try:
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            return starting.result()
        log.info("stopping before it has started")
        faulthandler.dump_traceback_later(SLOWEST_STOP_S, exit=True)
        return None
    finally:
        for task in (starting, stopping):
            task.cancel()
        await asyncio.gather(starting, stopping, return_exceptions=True)


async def _reload_on(hung_up: asyncio.Event, ready: Ready) -> None:
    while True:
        await hung_up.wait()
        hung_up.clear()
        try:
            await ready.reload("operator:SIGHUP")
        except StoreError as error:
            log.warning("reload: it cannot be recorded: %s", error)


def _announce(ready: Ready) -> None:
    agents = f" agentSocket={ready.agent_socket}" if ready.agent_socket else ""
    page = f" page={ready.page}" if ready.page else ""
    print(f"ready socket={ready.socket}{agents}{page}", flush=True)  # noqa: T201 - other programs wait for this line


def _log_to_stderr(loaded: LoadedConfig) -> None:
    logging.basicConfig(
        level=loaded.config.log.level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    for warning in (*loaded.warnings, *warnings_of_machine(loaded)):
        log.warning("%s", warning)


def _overrides(options: UpOptions) -> Overrides:
    return Overrides(
        exec_security=options.exec_security,
        exec_ask=options.exec_ask,
        no_sandbox=options.no_sandbox,
        allow_tools=options.allow_tools,
        deny_tools=options.deny_tools,
        profile=options.profile,
        port=options.port,
    )
