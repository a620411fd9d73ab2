"""Which words name Sayso's own state: denied early, for the message, not for the protection."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from core.display import safe
from core.execsec.policy import ExecPolicy
from core.model.command import Segment
from core.model.decision import Decision, Effect, Layer

_STATE_VARIABLE: Final = re.compile(r"\$\{?SAYSO_\w*")
_SEPARATOR: Final = re.compile(r"[=:@,]")
_HOME: Final = re.compile(r"^(?:~|\$HOME|\$\{HOME\})(?=/|\Z)")
# Without any of these, words stay below where the command runs.
_LEADS_AWAY: Final = re.compile(r"[/~$]|\.\.")
_IN_OPTION: Final = re.compile(r"-[A-Za-z0-9]*(?=[/~$.])")


def names_own_state(segment: Segment, env: Sequence[tuple[str, str]], policy: ExecPolicy) -> Decision | None:
    """Deny a command that runs among the protected, or in which a word or a variable names it."""
    if not policy.protected_paths:
        return None
    inside = next((place for place in segment.places if _protected(place, policy)), None)
    if inside is not None:
        return _denial(
            f"the command would run in {safe(inside)}, among Sayso's own state, where no command may"
        )
    path = _named(segment, env, policy)
    return None if path is None else _touches(path)


def mentions_own_state(texts: Iterable[str], policy: ExecPolicy) -> Decision | None:
    """Deny texts that could not be analysed and in which something protected is named."""
    path = _mentioned("\n".join(texts), policy)
    return None if path is None else _touches(path)


def _named(segment: Segment, env: Sequence[tuple[str, str]], policy: ExecPolicy) -> str | None:
    texts = [*segment.argv, *[value.value for _, value in segment.assignments], *[value for _, value in env]]
    joined = "\n".join(texts)
    if (found := _mentioned(joined, policy)) is not None:
        return found
    if segment.executable is not None and (found := _protected(segment.executable.real_path, policy)):
        return found
    leads_away = _LEADS_AWAY.search(joined) is not None
    for cwd in segment.places or ("/",):
        if leads_away or _may_hold(cwd, policy.protected_paths):
            places = (_place(piece, cwd, policy.home) for text in texts for piece in pieces(text) if piece)
            found = next(filter(None, (_protected(place, policy) for place in places)), None)
            if found is not None:
                return found
    return None


def _place(piece: str, cwd: str, home: str) -> str:
    return posixpath.normpath(posixpath.join(cwd, _HOME.sub(lambda _: home, piece) if home else piece))


@lru_cache(maxsize=1024)
def _may_hold(directory: str, protected: tuple[str, ...]) -> bool:
    return any(_is_below(path, directory) for path in protected)


def pieces(text: str) -> Iterator[str]:
    """Give a word, its parts at `=`, `:`, `@` and `,`, and a path that is joined to short options."""
    yield text
    parts = _SEPARATOR.split(text)
    if len(parts) > 1:
        yield from parts
    if text[:1] == "-" and "/" in text and (option := _IN_OPTION.match(text)):
        yield text[option.end() :]
        yield text[len("-o") :]


def _protected(place: str, policy: ExecPolicy) -> str | None:
    return next((path for path in policy.protected_paths if _is_below(place, path)), None)


def _is_below(place: str, path: str) -> bool:
    return place.startswith(path) and (place == path or place.startswith(path.rstrip("/") + "/"))


def _mentioned(text: str, policy: ExecPolicy) -> str | None:
    """Give the first protected path that stands in a text as a whole, or behind a variable of Sayso's."""
    if not policy.protected_paths:
        return None
    if "$" in text and _STATE_VARIABLE.search(text):
        return policy.protected_paths[0]
    return next((path for path in policy.protected_paths if path in text and _stands_in(path, text)), None)


def _stands_in(path: str, text: str) -> bool:
    at = text.find(path)
    while at >= 0:
        following = text[at + len(path) : at + len(path) + 1]
        if not (following.isalnum() or following in {"_", "-", "."}) or not following:
            return True
        at = text.find(path, at + 1)
    return False


def _touches(path: str) -> Decision:
    return _denial(
        f"the command touches Sayso's own state or configuration ({safe(path)}), which no command may"
    )


def _denial(reason: str) -> Decision:
    return Decision(Layer.EXEC_SECURITY, Effect.DENY, reason, "exec.deny-own-state")
