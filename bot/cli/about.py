"""`sayso version`, `sayso help`, and what `sayso` alone says."""

from __future__ import annotations

from bot.cli import exits
from bot.cli.parser import Parser
from bot.cli.terminal import coloured, put_json

OVERVIEW = """\
Sayso stands between AI agents and this machine: it runs on your say-so.

start    sayso init                     ask for a channel, write the configuration
         sayso up                       the daemon, in the foreground
         sayso doctor                   is everything that protects you really on?
ask      sayso exec -- git status       run a command, if policy or a person says yes
         sayso check TOOL --args JSON   may a tool be used like this?
         sayso wait ID                  come back to a question
decide   sayso pending                  what waits
         sayso approve ID [for 30m]     sayso deny ID [always] --reason T
         sayso permissions              what answers left standing; sayso allowlist list: what runs unasked
         sayso web link                 a login for the page; sayso operator unlock: the passphrase
look     sayso history                  sayso show ID
         sayso tools                    sayso explain -- CMD…
         sayso policy test FILE         cases, and what the policy must answer
         sayso config check|show        sayso reload, sayso status, sayso sessions
         sayso audit tail|verify        the record
         sayso channels test            a question that runs nothing
stop     sayso cancel ID                end a run; sayso session tighten KEY: make it stricter
         sayso lock, sayso unlock       stop everything, resume; sayso elevated KEY on: out of the sandbox
agents   sayso agent add|list|revoke    their tokens
people   sayso pair telegram            let one decide in a chat; sayso people list|remove

Every command tells its options with --help; most take --json, and --socket PATH for another daemon."""


def help_command(arguments: list[str]) -> int:
    """Print the overview, or the help of one command."""
    if arguments and arguments[0] not in ("--help", "-h"):
        from bot.cli import COMMANDS, main  # noqa: PLC0415 - the package imports this module

        if arguments[0] in COMMANDS:
            return main([arguments[0], "--help"])
        raise exits.UsageError(f"there is no command {arguments[0][:60]!r}")
    for line in OVERVIEW.splitlines():
        head, rest = line[:9], line[9:]
        print(coloured(head, "bold") + rest if head.strip() and head.endswith(" ") else line)
    return exits.OK


def version_command(arguments: list[str]) -> int:
    """Print the version."""
    from bot.version import version  # noqa: PLC0415 - slow, and only needed here

    parser = Parser("version", "Print the version.", client=False)
    parser.json_flag()
    options = parser.parse_args(arguments)
    if options.json:
        put_json({"version": version()})
    else:
        print(f"sayso {version()}")
    return exits.OK
