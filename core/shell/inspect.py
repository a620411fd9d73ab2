"""From a command as asked to facts about what would really run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.model.call import CommandText
from core.model.command import CommandFacts, Directory, Refusal, Segment, Word
from core.ports import Resolver
from core.shell.assemble import MAX_COMMANDS, MAX_WORDS, SimpleCommand
from core.shell.characters import forbidden_character
from core.shell.inline_code import inline_code
from core.shell.parse import Parse
from core.shell.parse import parse as parse_here
from core.shell.render import quote
from core.shell.resolve import Analysis, Rendered
from core.shell.scan import Refused

MAX_LENGTH: Final = 64 * 1024  # bytes of UTF-8
# Of the canonical form, in which quotes take more room: the kernel hands no longer word to a program.
MAX_RENDERED: Final = 128 * 1024
_FEW: Final = MAX_LENGTH // 4  # so many characters are not too long, whatever they are
MAX_SCRIPTS: Final = 16


def inspect(
    command: CommandText,
    *,
    cwd: str | None,
    path: Sequence[str],
    resolver: Resolver,
    parse: Parse = parse_here,
) -> CommandFacts:
    """Find out what a command would run; what is not plainly understood is refused, never guessed.

    `cwd` is None where it is not known in which directory it would run.
    """
    text = command.line if command.line is not None else " ".join(quote(word) for word in command.argv)
    try:
        rendered = _analyse(command, text, cwd, Analysis(path, resolver, _Counting(parse)))
    except Refused as refused:
        return CommandFacts(text=text, canonical=text, refused=(refused.refusal,))
    except RecursionError:
        return CommandFacts(
            text=text, canonical=text, refused=(Refusal("too-deep", 0, "it is nested too deep"),)
        )
    if len(rendered.text) >= _FEW and _is_too_long(rendered.text, MAX_RENDERED):
        why = f"with everything in it quoted it is {MAX_RENDERED // 1024} KiB long or more"
        return CommandFacts(text=text, canonical=text, refused=(Refusal("too-long", 0, why),))
    return CommandFacts(
        text=text,
        canonical=rendered.text,
        segments=rendered.segments,
        inline_code=any(map(inline_code, rendered.segments)),
        directories=_directories(rendered.segments, resolver),
    )


def _directories(segments: Sequence[Segment], resolver: Resolver) -> tuple[Directory, ...]:
    places = dict.fromkeys(place for segment in segments for place in segment.places)
    return tuple(filter(None, map(resolver.directory, places)))


def _analyse(command: CommandText, text: str, cwd: str | None, analysis: Analysis) -> Rendered:
    if len(text) >= _FEW and _is_too_long(text, MAX_LENGTH):
        why = f"it is {MAX_LENGTH // 1024} KiB ({MAX_LENGTH:,} bytes) long or more; put long text into a file"
        raise Refused("too-long", 0, why)
    found = forbidden_character(text)
    if found:
        raise Refused(found.construct, found.position, found.reason)
    return _resolved(command, cwd, analysis)


def _is_too_long(text: str, limit: int) -> bool:
    """Tell whether a text has that many bytes, or more."""
    return len(text) >= limit or len(text.encode("utf-8", "surrogatepass")) >= limit


class _Counting:
    """Counts the commands of a line with those in the lines that its shells are given."""

    def __init__(self, parse: Parse) -> None:
        self._parse = parse
        self._count = 0
        self._scripts = 0

    def __call__(self, text: str) -> tuple[SimpleCommand, ...]:
        self._scripts += 1
        if self._scripts > MAX_SCRIPTS + 1:
            raise Refused("too-many-shells", 0, f"more than {MAX_SCRIPTS} shells are given scripts in it")
        commands = self._parse(text)
        self._count += len(commands)
        if self._count > MAX_COMMANDS:
            raise Refused("too-many-commands", 0, f"more than {MAX_COMMANDS} commands")
        return commands


def _resolved(command: CommandText, cwd: str | None, analysis: Analysis) -> Rendered:
    fed = command.stdin is not None
    if command.line is not None:
        return analysis.line(analysis.parse(command.line), cwd, fed=fed)
    if not command.argv or not command.argv[0]:
        raise Refused("empty", 0, "there is no command in it")
    if len(command.argv) > MAX_WORDS:
        raise Refused("too-many-words", 0, f"more than {MAX_WORDS} words")
    words = [Word(value, quote(value)) for value in command.argv]
    return analysis.alone(words, cwd, fed=fed)
