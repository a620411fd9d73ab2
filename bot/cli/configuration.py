"""`sayso config check|show`, and loading the configuration for other commands."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bot.cli import exits
from bot.cli.parser import Parser, verb
from bot.cli.terminal import coloured, note, put_json, shown
from bot.client import home
from bot.config import LoadedConfig, Overrides, load
from bot.config.standing import refuse_exposed
from bot.config.tree import Parts, find, path_text
from bot.site import survey
from bot.usable import refuse_bad_socket, warnings_of_machine
from core.config import AllowlistRule, ExecSecurity
from core.errors import ConfigError, StartError
from core.model.command import Placement


def loaded(paths: Sequence[Path]) -> LoadedConfig:
    """Load the configuration; raises BadConfiguration, whose text names file, line and key."""
    try:
        return load(list(paths), env=os.environ, overrides=Overrides())
    except ConfigError as error:
        raise exits.BadConfiguration(str(error)) from None


def config_command(arguments: list[str]) -> int:
    """Check or show the effective configuration."""
    verbs = {
        "check": "tell what is wrong with it, or that nothing is",
        "show": "print it, with where it is from",
    }
    which, rest = verb("config", arguments, "The effective configuration, without starting anything.", verbs)
    parser = Parser(
        f"config {which}", "The effective configuration, without starting anything.", client=False
    )
    parser.add_argument(
        "--config",
        action="append",
        type=Path,
        default=[],
        metavar="F",
        help="later ones overlay earlier ones",
    )
    parser.json_flag()
    options = parser.parse_args(rest)
    found = loaded(options.config)
    if which == "check":
        _refuse_unusable(found)
    if not options.config:
        note("no --config: these are the defaults, environment variables applied")
    return (_check if which == "check" else _show)(found, as_json=options.json)


def _refuse_unusable(found: LoadedConfig) -> None:
    """Refuse what starting would refuse of the places on this machine."""
    try:
        refuse_exposed(found)
        survey(found.config, Path(home()), found.protected_paths)
        refuse_bad_socket(found, Path(home()))
    except (ConfigError, StartError) as error:
        raise exits.BadConfiguration(str(error)) from None


def _check(found: LoadedConfig, *, as_json: bool) -> int:
    warnings = [*found.warnings, *_idle_allowlists(found), *warnings_of_machine(found)]
    if as_json:
        put_json({"ok": True, "warnings": warnings})
        return exits.OK
    for warning in warnings:
        note(f"warning: {warning}", "yellow")
    print("the configuration is valid")
    return exits.OK


def _idle_allowlists(found: LoadedConfig) -> Iterator[str]:
    """Name the lists of which no entry counts, because everything is denied where it would."""
    general = found.config.exec
    agents = {f"agents.{name}.exec": agent.exec for name, agent in found.config.agents.by_id.items()}
    of_agents = [agent.security or general.security for agent in agents.values()]
    read_under = {
        "tools.exec": [general.security, *of_agents],
        **{key: [mode] for key, mode in zip(agents, of_agents, strict=True)},
    }
    lists = {"tools.exec": general.allowlist, **{key: agent.allowlist for key, agent in agents.items()}}
    for key, entries in lists.items():
        if entries and all(_denied(entry, mode) for entry in entries for mode in read_under[key]):
            yield (
                f"{key}.allowlist: none of its entries counts, because security is deny there (in a sandbox "
                f"also where none is set); set {key}.security: allowlist, or take the entries out"
            )


def _denied(entry: AllowlistRule, security: ExecSecurity | None) -> bool:
    by_place = ExecSecurity.DENY if entry.placement is Placement.SANDBOX else ExecSecurity.ALLOWLIST
    return (security or by_place) is ExecSecurity.DENY


def _show(found: LoadedConfig, *, as_json: bool) -> int:
    rows = [(path_text(parts), value, _written(found, parts)) for parts, value in _leaves(found.redacted())]
    if as_json:
        put_json([{"key": path, "value": value, "source": where} for path, value, where in rows])
        return exits.OK
    for path, value, where in rows:
        print(f"{path}: {shown(json.dumps(value, ensure_ascii=False))}  {coloured('# ' + where, 'dim')}")
    return exits.OK


def _written(found: LoadedConfig, parts: Parts) -> str:
    node = find(found.tree, parts)
    return str(node.origin) if node else "default"


def _leaves(value: Any, parts: Parts = ()) -> Iterator[tuple[Parts, Any]]:  # noqa: ANN401 - any JSON value
    """Yield what is not a mapping, with its path; a mapping without keys is a value too."""
    if not isinstance(value, dict) or not value:
        yield parts, value
        return
    for key, inner in value.items():
        yield from _leaves(inner, (*parts, key))
