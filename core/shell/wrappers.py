"""Programs that only run another one: where in their arguments it begins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.model.command import Word
from core.shell.environment import NAME


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """`flags` stand alone, `valued` take a value (joined or next word), `operands` precede the command."""

    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    operands: int = 0
    numeric: bool = False  # `-5`
    assigns: bool = False  # NAME=value operands


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """`taken` words belong to the wrapper; what it sets for the command is in `assignments`."""

    taken: int
    assignments: tuple[tuple[str, Word], ...] = ()


_TABLE: Final[dict[str, _Wrapper]] = {
    "env": _Wrapper(frozenset(("-i", "--ignore-environment")), frozenset(("-u", "--unset")), assigns=True),
    "nice": _Wrapper(valued=frozenset(("-n", "--adjustment")), numeric=True),
    "timeout": _Wrapper(
        frozenset(("--preserve-status", "--foreground", "-v", "--verbose")),
        frozenset(("-s", "--signal", "-k", "--kill-after")),
        operands=1,
    ),
    "nohup": _Wrapper(),
    "stdbuf": _Wrapper(valued=frozenset(("-i", "--input", "-o", "--output", "-e", "--error"))),
    "ionice": _Wrapper(frozenset(("-t", "--ignore")), frozenset(("-c", "--class", "-n", "--classdata"))),
}
_NUMBER: Final = re.compile(r"-{1,2}\d+")


def unwrap(name: str, words: Sequence[Word]) -> Unwrapped | None:
    """Find the command behind a wrapper; None where an option is unknown or there is no command."""
    wrapper = _TABLE.get(name)
    if wrapper is None:
        return None
    at = _options(wrapper, words)
    if at is None:
        return None
    at += wrapper.operands
    assignments: list[tuple[str, Word]] = []
    while wrapper.assigns and at < len(words) and "=" in words[at].value:
        set_name, _, value = words[at].value.partition("=")
        if not words[at].literal or not NAME.fullmatch(set_name):
            return None
        assignments.append((set_name, Word(value, value)))
        at += 1
    before = words[:at]
    if at >= len(words) or not words[at].literal or not all(word.literal for word in before):
        return None
    return Unwrapped(at, tuple(assignments))


def _options(wrapper: _Wrapper, words: Sequence[Word]) -> int | None:
    at = 1
    while at < len(words) and words[at].value.startswith("-"):
        option = words[at].value
        if option == "--":
            return at + 1
        taken = _option(wrapper, option)
        if taken is None:
            return None
        at += taken
    return at


def _option(wrapper: _Wrapper, option: str) -> int | None:
    if option in wrapper.flags or (wrapper.numeric and _NUMBER.fullmatch(option)):
        return 1
    if option in wrapper.valued:
        return 2
    head = option.partition("=")[0] if option.startswith("--") else option[:2]
    return 1 if head in wrapper.valued and head != option else None


def shell_script(words: Sequence[Word]) -> Word | None:
    """Return LITERAL of `sh -c LITERAL` or `-lc LITERAL` where nothing else is given."""
    if [word.value for word in words[1:2]] not in (["-c"], ["-lc"], ["-cl"]):
        if [word.value for word in words[1:3]] != ["-l", "-c"]:
            return None
        words = words[1:]
    script = words[2] if len(words) == len(("sh", "-c", "script")) else None
    return script if script is not None and script.literal and words[1].literal else None
