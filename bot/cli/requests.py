"""`sayso pending`, `history`, `show`: what waits, what was decided, everything about one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bot.cli import exits
from bot.cli.moments import add_times, times
from bot.cli.operator import ask
from bot.cli.parser import Parser, count
from bot.cli.terminal import ago, coloured, facts, left, put_json, shown, span, table

Json = dict[str, Any]

SHORT = 8
COMMAND_WIDTH = 100
_LONG_MS = 10_000
_COLOURS = {"waiting": "yellow", "running": "green", "finished": "green", "denied": "red", "failed": "red"}


def pending_command(arguments: list[str]) -> int:
    """List what waits for a person."""
    parser = Parser("pending", "List what waits for a person.")
    parser.json_flag()
    options = parser.parse_args(arguments)
    requests = ask("exec.approval.list")
    if options.json:
        put_json(requests)
    elif not requests:
        print("nothing waits")
    else:
        rows = [(_short(r), r["agent"], r["placement"], left(r["deadline"]), _command(r)) for r in requests]
        table(("ID", "AGENT", "WHERE", "TIME", "COMMAND"), rows)
        _print_progress(requests)
    return exits.OK


def _print_progress(requests: list[Json]) -> None:
    """Say below the list who has allowed what several people must allow."""
    for request in requests:
        if request.get("progress"):
            print(f"{_short(request)}: {shown(request['progress'])}")


def history_command(arguments: list[str]) -> int:
    """List what was decided."""
    parser = Parser("history", "List what was decided, newest first.")
    parser.add_argument("--limit", type=count, default=20, metavar="N", help="how many (default 20)")
    parser.add_argument("--agent", metavar="ID", help="of this agent")
    parser.add_argument("--session", metavar="KEY", help="of sessions whose key has this part")
    parser.add_argument("--person", metavar="WHO", help="answered by CHANNEL:ID, an id, or a name")
    parser.add_argument("--text", metavar="T", help="whose command has this part")
    parser.add_argument("--state", action="append", metavar="S", help="in this state; may be given again")
    add_times(parser)
    parser.json_flag()
    options = vars(parser.parse_args(arguments))
    as_json, states = options.pop("json"), options.pop("state")
    requests = ask("request.history", **{**options, **times(options, "history"), "states": states})
    if as_json:
        put_json(requests)
    elif not requests:
        print("nothing that was decided fits" if _filtered(options, states) else "nothing was decided yet")
    else:
        rows = [(_short(r), r["agent"], _state(r), ago(r["createdAt"]), _command(r)) for r in requests]
        table(("ID", "AGENT", "STATE", "ASKED", "COMMAND"), rows)
    return exits.OK


def _filtered(options: Json, states: list[str] | None) -> bool:
    return bool(states) or any(value for name, value in options.items() if name != "limit")


def _short(request: Json) -> str:
    return str(request["id"][:SHORT])


def _state(request: Json) -> str:
    code = request.get("exitCode")
    return f"{request['state']} ({code})" if code else str(request["state"])


def _command(request: Json) -> str:
    """Head and tail where it is long, with the gap counted: a tail is never silently cut."""
    text = shown(request["command"])
    if len(text) <= COMMAND_WIDTH:
        return text
    half = COMMAND_WIDTH // 2
    return f"{text[:half]} …[{len(text) - 2 * half} more]… {text[-half:]}"


def show_command(arguments: list[str]) -> int:
    """Tell everything about one request."""
    parser = Parser("show", "Tell everything about one request.")
    parser.add_argument("id", help="the request, or the first 8 characters of its id")
    parser.json_flag()
    options = parser.parse_args(arguments)
    request = ask("request.show", id=options.id)
    if options.json:
        put_json(request)
    else:
        _show(request)
    return exits.OK


def _show(request: Json) -> None:
    state = request["state"]
    print(f"{request['id']}  {coloured(state, _COLOURS.get(state, 'bold'))}")
    command = shown(request["command"], multiline=True).replace("\n", "\n    ")
    print(f"\n    {command}\n")
    facts(
        (
            ("agent", request["agent"]),
            ("asked by", _peer(request.get("peer"))),
            ("session", request["session"]),
            ("where", request["placement"]),
            ("directory", request["cwd"]),
            ("asked", _time(request["createdAt"])),
            ("time", left(request["deadline"]) if state == "waiting" else None),
            ("why", request.get("reason")),
            ("rule", _rule(request)),
            ("always", _always(request)),
            ("or, any", "; ".join(request.get("alwaysAny") or ()) or None),
            ("answers", request.get("progress") if state == "waiting" else None),
            ("decided", request.get("decided")),
            ("by", (request.get("approval") or {}).get("by")),
            ("reason", (request.get("approval") or {}).get("reason")),
            ("started", _time(request["startedAt"]) if request.get("startedAt") else None),
            ("ended", _time(request["endedAt"]) if request.get("endedAt") else None),
        )
    )
    _show_outcome(request.get("outcome") or {})
    _show_rows("layers", [_layer(row) for row in (request.get("verdict") or {}).get("trace", ())])
    _show_rows(_reviews_title(request), [_review(row) for row in request.get("reviews", ())])
    _show_rows("messages", [_copy(copy) for copy in request.get("copies", ())])
    _show_rows("record", [_event(event) for event in request.get("record", ())])


def _time(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S} ({ago(at_ms)})"


def _rule(request: Json) -> str:
    where = f" ({request['where']})" if request.get("where") else ""
    return f"{request.get('rule')}, {request.get('source')}{where}"


def _always(request: Json) -> str | None:
    always = request.get("always")
    if not isinstance(always, dict):
        return None
    return "; ".join(always.get("words") or ()) or always.get("why")


def _show_outcome(outcome: Json) -> None:
    took = outcome.get("durationMs")
    facts(
        (
            ("exit", outcome.get("exitCode")),
            ("took", _took(took)),
            ("sandbox", outcome.get("sandbox")),
            ("stdout", outcome.get("stdout", "").rstrip("\n")),
            ("stderr", outcome.get("stderr", "").rstrip("\n")),
        )
    )


def _took(duration_ms: int | None) -> str | None:
    if duration_ms is None:
        return None
    return f"{duration_ms} ms" if duration_ms < _LONG_MS else span(duration_ms / 1000)


def _show_rows(title: str, rows: list[str]) -> None:
    if rows:
        print(f"\n{coloured(title, 'bold')}")
    for row in rows:
        print(f"  {shown(row)}")


def _peer(peer: Json | None) -> str | None:
    return f"process {peer['pid']} of user {peer['uid']}" if peer else None


def _copy(copy: Json) -> str:
    place = f" {copy['place']}" if copy["place"] else ""
    tries = f", {copy['tries']} tries" if copy["tries"] > 1 else ""
    error = f": {copy['error']}" if copy["error"] else ""
    again = (
        f"; again in {left(copy['dueAt']).removesuffix(' left')}" if copy["error"] and copy["dueAt"] else ""
    )
    return f"{copy['channel']}{place}  {copy['state']}{tries}{error}{again}"


def _reviews_title(request: Json) -> str:
    required = request.get("required", 1)
    return "answers" if required == 1 else f"answers ({required} different people must say yes)"


def _review(row: Json) -> str:
    moment = datetime.fromtimestamp(row["at"] / 1000, UTC).astimezone()
    time = f" {span(row['forMs'] / 1000)}" if row["forMs"] else ""
    reason = f": {row['reason']}" if row["reason"] else ""
    return f"{moment:%H:%M:%S}  {row['answer']}{time}  {row['by']}{reason}"


def _layer(row: Json) -> str:
    return f"{row['effect']:<6}{row['layer']:<15}{row['rule']:<22}  {row['reason']}"


def _event(event: Json) -> str:
    moment = datetime.fromtimestamp(event["at"] / 1000, UTC).astimezone()
    return f"{moment:%H:%M:%S}  {event['kind']:<22}{event['actor']}"
