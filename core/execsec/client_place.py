"""Where a command runs that the agent's own program carries out: where that says, or nobody knows where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from core.display import safe
from core.execsec.own_state import pieces
from core.model.call import CommandText
from core.model.command import CommandFacts, Segment
from core.model.decision import Decision, Effect, Layer
from core.ports import Resolver

_WITH_ENDING: Final = re.compile(r"[\w@%+-][\w@%+.-]*\.[A-Za-z]\w*")
_NEXT: Final = "send cwd, the absolute directory in which your program would run it"


def client_directory(command: CommandText, resolver: Resolver) -> tuple[str | None, Decision | None]:
    """Return the directory of a client's command, never another in its place; None where it is not known."""
    if command.cwd is None:
        return None, None
    real = resolver.real_directory(command.cwd)
    if real is not None:
        return real, None
    return None, _denied(f"cwd {safe(command.cwd)} is not a directory, or not one that Sayso can enter")


def without_directory(facts: CommandFacts) -> Decision | None:
    """Deny what names a relative path, or could not be read, where no directory was told."""
    if not facts.analysable:
        return _denied(f"no cwd came with it, and it cannot be told what it names; {_NEXT}")
    named = (word for segment in facts.segments for word in _words(segment))
    relative = next((word for word in named if any(map(_is_relative, pieces(word)))), None)
    if relative is None:
        return None
    return _denied(f"no cwd came with it, so it is not known where `{safe(relative)}` lies; {_NEXT}")


def _words(segment: Segment) -> Iterator[str]:
    """Give what may name a file; a program without a `/` is looked for on the PATH."""
    program = segment.argv[:1]
    yield from (word for word in program if "/" in word)
    yield from segment.argv[1:]
    yield from (value.value for _, value in (*segment.assigned_before, *segment.assignments))
    for each in segment.wrappers:
        if not each.name.endswith(" -c"):  # whose line is among the segments
            yield from (word.value for word in each.words[1:])


def _is_relative(piece: str) -> bool:
    if piece[:1] in {"/", "-"}:
        return False
    return piece[:1] == "." or "/" in piece or _WITH_ENDING.fullmatch(piece) is not None


def _denied(reason: str) -> Decision:
    return Decision(Layer.EXEC_SECURITY, Effect.DENY, reason, "exec.cwd")
