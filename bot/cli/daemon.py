"""`sayso status`, `web link`, `audit tail|export|verify`: the daemon and its record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bot.cli import exits
from bot.cli.operator import ask
from bot.cli.parser import Parser, count, verb
from bot.cli.terminal import coloured, facts, left, note, put_json, shown


def status_command(arguments: list[str]) -> int:
    """Tell how the daemon is."""
    parser = Parser("status", "Tell how the daemon is.")
    parser.json_flag()
    options = parser.parse_args(arguments)
    status = ask("daemon.status")
    if options.json:
        put_json(status)
    else:
        health, undecided = status.pop("health", []), status.pop("undecided", [])
        if "configuration" in status:
            status["configuration"] = _read_from(status["configuration"], status.pop("piped", []))
        cut_off = status.pop("cutOff", None)
        if "host" in status:
            status["host"] = _host(status["host"])
        facts([(name, _plain(value)) for name, value in status.items()])
        if "passphrase" in status and "host" not in status:
            note("all else is told in a terminal after: sayso operator unlock")
        if cut_off:
            print(coloured(shown(cut_off, multiline=True), "yellow"))
        for row in health:
            print(_health_line(row))
        for channel in undecided:
            print(
                coloured(f"{shown(channel)}: nobody can decide there; sayso pair {shown(channel)}", "yellow")
            )
    return exits.OK


def _read_from(files: list[str], piped: list[str]) -> str:
    told = [*files, *(f"{given} (by a pipe)" for given in piped)]
    return ", ".join(told) or "the defaults"


def _health_line(row: dict[str, str]) -> str:
    colour = {"ok": "green", "down": "red"}.get(row["state"], "yellow")
    state = coloured(shown(row["state"]).ljust(8), colour)
    return f"{state}  {shown(row['channel'])}: {shown(row['words'])}"


def _host(found: dict[str, Any]) -> str:
    """Say whether runs on the host are held from Sayso's own state, and what that means."""
    if found.get("held"):
        return "runs on the host are held from Sayso's own state"
    what = "tools.exec.unconfinedHost: accept lets full run all the same" if found.get("accepted") else ""
    return f"runs on the host are not held, so {what or 'each asks'}: {found.get('why')}"


def _plain(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_plain(inner) for inner in value)
    return str(value)


def web_command(arguments: list[str]) -> int:
    """Make a login link for the page."""
    _, rest = verb("web", arguments, "The page in the browser.", {"link": "make a login link for it"})
    parser = Parser("web link", "Make a login link for the page; it counts once.")
    parser.json_flag()
    options = parser.parse_args(rest)
    link = ask("web.link")
    if options.json:
        put_json(link)
    else:
        print(shown(link["url"]))
        note(f"it counts once, {left(link['expiresAt'])}; open it and press the button")
    return exits.OK


def audit_command(arguments: list[str]) -> int:
    """Read the record, or prove it whole."""
    verbs = {
        "tail": "print its newest events",
        "export": "print it as JSON lines",
        "verify": "prove it whole",
    }
    which, rest = verb("audit", arguments, "The record of all that was asked, decided and run.", verbs)
    if which == "export":
        from bot.cli.record import export  # noqa: PLC0415 - the others start faster without it

        return export(rest)
    return _tail(rest) if which == "tail" else _verify(rest)


def _tail(arguments: list[str]) -> int:
    parser = Parser("audit tail", "Print the newest events of the record, oldest first.")
    parser.add_argument("--limit", type=count, default=20, metavar="N", help="how many (default 20)")
    parser.json_flag()
    options = parser.parse_args(arguments)
    for event in ask("audit.tail", limit=options.limit):
        if options.json:
            put_json(event)
        else:
            print(_line(event))
    return exits.OK


def _line(event: dict[str, Any]) -> str:
    moment = datetime.fromtimestamp(event["at"] / 1000, UTC).astimezone()
    about = (event.get("request") or "")[:8] or "-"
    kind = coloured(f"{event['kind']:<22}", "bold")
    return f"{event['seq']:>6}  {moment:%Y-%m-%d %H:%M:%S}  {kind} {about:<8}  {shown(event['actor'])}"


def _verify(arguments: list[str]) -> int:
    parser = Parser("audit verify", "Recompute the chain of the record; exit 1 where it is broken.")
    parser.add_argument("--file", metavar="F", help="an exported record, checked without the daemon")
    parser.json_flag()
    options = parser.parse_args(arguments)
    if options.file is not None:
        from bot.cli.record import verify_file  # noqa: PLC0415 - as above

        return verify_file(options.file, as_json=options.json)
    found = ask("audit.verify")
    if options.json:
        put_json(found)
    elif found["ok"]:
        print(f"the record is whole: {found['events']} events, head {str(found['head'])[:16]}")
    else:
        print(
            coloured(f"the record is broken at event {found['brokenAt']}: {shown(found['problem'])}", "red")
        )
    return exits.OK if found["ok"] else exits.DIFFERENCE
