"""`sayso people`: who was let in by a code, and taking that back."""

from __future__ import annotations

from bot.cli import exits
from bot.cli.operator import ask
from bot.cli.parser import Parser, verb
from bot.cli.terminal import ago, note, put_json, shown, table


def people_command(arguments: list[str]) -> int:
    """List people, or take a person's right back."""
    verbs = {"list": "list who was let in by sayso pair", "remove": "take a person's right back"}
    which, rest = verb("people", arguments, "People who may decide in chats.", verbs)
    return _list(rest) if which == "list" else _remove(rest)


def _list(arguments: list[str]) -> int:
    parser = Parser("people list", "List who was let in by sayso pair, oldest first.")
    parser.json_flag()
    options = parser.parse_args(arguments)
    people = ask("pairing.people")
    if options.json:
        put_json(people)
    elif people:
        heads = ("CHANNEL", "ID", "NAME", "DECIDES IN", "LET IN")
        table(heads, [_row(person) for person in people])
    else:
        note("nobody was let in by a code; sayso pair CHANNEL lets a person in")
    return exits.OK


def _row(person: dict[str, object]) -> tuple[object, ...]:
    at = person["pairedAt"]
    where = person["route"] or "direct messages"
    return person["channel"], person["id"], person["name"], where, ago(at if isinstance(at, int) else None)


def _remove(arguments: list[str]) -> int:
    parser = Parser("people remove", "Take a person's right back; it ends at once.")
    parser.add_argument("channel", metavar="CHANNEL")
    parser.add_argument("id", metavar="ID", help="as sayso people list shows it")
    parser.add_argument(
        "--route", metavar="R", help="the target they were let in for (default: direct messages)"
    )
    parser.json_flag()
    options = parser.parse_args(arguments)
    done = ask("pairing.unpair", channel=options.channel, id=options.id, route=options.route)
    if options.json:
        put_json(done)
    else:
        print(shown(done["text"]))
    return exits.OK
