"""`sayso exec`, `check`, `wait`: ask, follow, and leave with the command's own status."""

from __future__ import annotations

import os
import sys

from bot.cli import exits
from bot.cli.follow import Follower
from bot.cli.parser import Parser, split_command
from bot.client import Unreachable, for_agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

DEFAULT_AGENT = "main"


def exec_command(arguments: list[str]) -> int:
    """Ask to run a command, and follow it to its end."""
    before, argv = split_command(arguments)
    parser = Parser("exec", "Ask to run a command; exits with its status.", usage=_EXEC_USAGE)
    _identity(parser)
    parser.add_argument("-c", dest="line", metavar="LINE", help="a shell line instead of a command after --")
    parser.add_argument("--cwd", help="run here (without it: here if the sandbox shows it, or the workspace)")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="add a variable")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="end the run after so many seconds")
    parser.add_argument("--elevated", choices=("on", "ask", "full", "off"), help="ask for this level")
    parser.add_argument(
        "--new-privileges", action="store_true", help="let setuid programs count; always asks"
    )
    parser.add_argument("--security", choices=("deny", "allowlist", "full"), help="judge it no milder")
    parser.add_argument("--ask", choices=("off", "on-miss", "always"), help="likewise")
    parser.add_argument("--approval", metavar="ID", help="run under the approval got for exactly this")
    parser.add_argument("--stdin", action="store_true", help="give the command what this one reads on stdin")
    _waiting(parser)
    options = parser.parse_args(before)
    params = {**_subject(options, argv), **_place(options), **_session(options)}
    params["approvalId"] = options.approval
    params["detach"] = not options.wait
    return _ask(options, "exec.run", params)


_EXEC_USAGE = "sayso exec [options] -- CMD…   or   sayso exec [options] -c 'shell line'"


def check_command(arguments: list[str]) -> int:
    """Ask about a tool call without running it."""
    parser = Parser("check", "Ask about a tool call without running it.")
    parser.add_argument("tool", help="the tool's name")
    parser.add_argument("--args", default="{}", metavar="JSON", help="its arguments, as a JSON object")
    parser.add_argument(
        "--cwd", metavar="D", help="where it would run, and relative paths start (default: here)"
    )
    _identity(parser)
    _waiting(parser)
    options = parser.parse_args(arguments)
    params = {
        "tool": options.tool,
        "args": json_object(options.args, "check", "--args"),
        "wait": options.wait,
        "cwd": os.path.abspath(options.cwd or _here()),  # noqa: PTH100 - pathlib is not worth its import
    }
    return _ask(options, "tool.check", {**params, **_session(options)})


def wait_command(arguments: list[str]) -> int:
    """Wait again for a decision, and run what was approved."""
    parser = Parser("wait", "Wait for the decision on a request, and for its run.")
    parser.add_argument("id", help="the request, or the first 8 characters of its id")
    _identity(parser)
    options = parser.parse_args(arguments)
    return _ask(options, "exec.approval.waitDecision", {"id": options.id})


def json_object(text: str, command: str, option: str) -> dict[str, Any]:
    """Read a JSON object from an option; raises UsageError."""
    import json  # noqa: PLC0415 - the client has it; named here for its one use

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise exits.UsageError(f"{command}: {option} is not JSON: {error}", command) from None
    if not isinstance(value, dict):
        raise exits.UsageError(f"{command}: {option} must be a JSON object", command)
    return value


def seconds(text: str) -> float:
    """Read a length of time from an option."""
    import argparse  # noqa: PLC0415 - the parser has it; named here for its one use

    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if 0 < value < float("inf"):
        return value
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is no length of time; give seconds, such as 30 or 0.5")


def _identity(parser: Parser) -> None:
    parser.add_argument("--agent", default=os.environ.get("SAYSO_AGENT", DEFAULT_AGENT), help="ask as")
    parser.add_argument("--session", metavar="KEY", help="the agent's session (default: its main one)")
    parser.json_flag()


def _waiting(parser: Parser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--wait", action="store_true", default=True, help="wait for a person (default)")
    group.add_argument("--no-wait", action="store_false", dest="wait", help="print the id and go on")


def _subject(options: Namespace, argv: list[str] | None) -> dict[str, Any]:
    if (options.line is None) is (argv is None):
        raise exits.UsageError("exec: give a command after --, or a shell line with -c", "exec")
    if options.line is not None:
        if not options.line.strip():
            raise exits.UsageError("exec: the command is empty", "exec")
        return {"command": options.line}
    if not argv or not argv[0]:
        raise exits.UsageError("exec: the command is empty", "exec")
    return {"argv": argv}


def _place(options: Namespace) -> dict[str, Any]:
    place: dict[str, Any] = {"cwd": os.path.abspath(options.cwd or _here()), "cwdPreferred": not options.cwd}  # noqa: PTH100 - pathlib is not worth its import here
    if options.env:
        place["env"] = dict(_pair(text) for text in options.env)
    if options.stdin:
        place["stdin"] = _stdin()
    place["timeoutSeconds"] = options.timeout
    place["newPrivileges"] = options.new_privileges or None
    place["elevated"] = options.elevated
    place["security"] = options.security
    place["ask"] = options.ask
    return place


def _here() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - as above
    except FileNotFoundError:
        raise exits.UsageError("exec: the current directory is gone; give --cwd", "exec") from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise exits.UsageError(f"exec: --env {text!r} is not NAME=VALUE", "exec")
    return name, value


def _stdin() -> str:
    from binascii import b2a_base64  # noqa: PLC0415 - only with --stdin

    return b2a_base64(sys.stdin.buffer.read(), newline=False).decode("ascii")


def _session(options: Namespace) -> dict[str, Any]:
    return {"session": options.session}


def _ask(options: Namespace, method: str, params: dict[str, Any]) -> int:
    given = {name: value for name, value in params.items() if value is not None}
    follower = Follower(as_json=options.json, waits=getattr(options, "wait", True))
    try:
        with for_agent(options.agent) as client:
            outcome = client.call(method, given, follower.notified)
    except KeyboardInterrupt:
        follower.left_behind()
        raise
    except Unreachable:
        follower.cut_off()
        raise
    return follower.finish(outcome)
