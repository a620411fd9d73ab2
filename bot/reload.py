"""Reading the configuration again while the daemon runs: what holds at once, and what waits for a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from bot.config import LoadedConfig
from bot.config.marks import Mark
from bot.config.standing import exchanged
from core.config import Agents, Config
from core.errors import ConfigError

# What is built once at start. Everything else is looked up in the configuration when a call is decided.
AT_START = MappingProxyType(
    {
        "channels": "channels are opened at start",
        "log": "the log is set up at start",
        "daemon.socket": "the sockets are opened at start",
        "operator.local": "the operator's credential is read at start",
        "sandboxing.backend": "the runner is built at start",
        "sandboxing.workspaceRoot": "the runner is built at start",
        "sandboxing.user": "the runner is built at start",
        "approvals.exec.cleanupAfterResolve": "the ledger is built at start",
    }
)


@dataclass(frozen=True, slots=True)
class Changed:
    """A key whose value is another one than before; `where` is None where the default holds again."""

    key: str
    where: str | None
    why_later: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """Give one row of the answer to `config.reload`."""
        return {"key": self.key, "where": self.where, "whyLater": self.why_later}


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What came of reading again. With `problems` nothing has changed.

    `host` says what came of trying again whether runs on the host can be held, where they could not.
    """

    at_once: tuple[Changed, ...] = ()
    at_restart: tuple[Changed, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    host: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the answer to `config.reload`."""
        return {
            "ok": not self.problems,
            "atOnce": [changed.to_json() for changed in self.at_once],
            "atRestart": [changed.to_json() for changed in self.at_restart],
            "warnings": list(self.warnings),
            "problems": list(self.problems),
            "host": self.host,
        }


def reload(
    in_force: LoadedConfig,
    read: Callable[[], LoadedConfig],
    put: Callable[[LoadedConfig], None],
    doubts: Callable[[Mapping[str, Mark]], Iterable[object]] = lambda _read: (),
    *,
    anew: bool = False,
) -> Reloaded:
    """Read again and put in force what can be; a configuration that start would refuse changes nothing.

    Neither does one of which `doubts` says, by how its files stood when they were read, that it may not be
    the operator's, nor one to whose files other directories lead by now.

    `put` gets the new configuration with the old values of what waits for a restart, so that no half of a
    change holds, and the next reload tells of it again. It raises ConfigError where it cannot be used, before
    anything is replaced. With `anew` it gets what is in force where nothing else holds at once, for the sake
    of the machine that may be another.
    """
    try:
        found = read()
        _raise_any(exchanged(in_force.ways, found.ways))
        told = differences(in_force, found)
        moved = found.protected_paths != in_force.protected_paths
        if told.at_once or told.at_restart or moved:
            _raise_any(doubts(found.marks))
        if told.at_once or moved:
            # What is held until the restart may still be read from where it was written before.
            protected = tuple(dict.fromkeys((*in_force.protected_paths, *found.protected_paths)))
            put(replace(found, config=_held(in_force.config, found.config), protected_paths=protected))
        elif anew:
            put(in_force)
    except ConfigError as refused:
        return Reloaded(problems=tuple(str(refused).splitlines()))
    return told


def _raise_any(doubts: Iterable[object]) -> None:
    if words := "\n".join(map(str, doubts)):
        raise ConfigError(words)


def differences(old: LoadedConfig, new: LoadedConfig) -> Reloaded:
    """Compare two configurations key by key; values are never told, because they may be secrets."""
    found = [
        Changed(key, new.where(key, exact=True), _why_later(key))
        for key in _changes(old.config, new.config, "")
    ]
    return Reloaded(
        at_once=tuple(changed for changed in found if changed.why_later is None),
        at_restart=tuple(changed for changed in found if changed.why_later is not None),
        warnings=tuple(warning for warning in new.warnings if warning not in old.warnings),
    )


def _why_later(key: str) -> str | None:
    return next((why for start, why in AT_START.items() if key == start or key.startswith(f"{start}.")), None)


def _changes(old: Any, new: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - any value of the models
    """Yield the key of every value that differs; a section that came or went is one difference."""
    if not (isinstance(old, BaseModel | dict) and type(old) is type(new)):
        if old != new:
            yield path
        return
    before, after = _entries(old), _entries(new)
    for key in {**before, **after}:
        below = f"{path}.{key}" if path else key
        if key not in before or key not in after:
            yield below
        else:
            yield from _changes(before[key], after[key], below)


def _entries(value: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    if isinstance(value, Agents):
        return {"defaults": value.defaults, **value.by_id}
    if isinstance(value, BaseModel):
        return {field.alias or name: getattr(value, name) for name, field in type(value).model_fields.items()}
    return dict(value)


def _held(old: Config, new: Config) -> Config:
    """Give the new configuration with the old values of everything in AT_START."""
    held: Config = new
    for path in AT_START:
        held = _with_value_of(old, held, path.split("."))
    return held


def _with_value_of(old: Any, new: Any, parts: list[str]) -> Any:  # noqa: ANN401 - sections and their values
    if not parts:
        return old
    name = next(name for name, field in type(new).model_fields.items() if parts[0] in (field.alias, name))
    value = _with_value_of(getattr(old, name), getattr(new, name), parts[1:])
    return new.model_copy(update={name: value})
