"""Programs that only run another one: where in their arguments it begins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from core.model.command import Word
from core.shell.environment import NAME
from core.shell.word_list import word_list


class _Options(Struct, frozen=True):
    """`flags` stand alone, `valued` take a value (joined or next word), `operands` precede the command.

    They are spelled as GNU, util-linux and busybox do; one that none of these lists stops the reading.
    """

    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    operands: int = 0
    numeric: bool = False  # `-5`
    assigns: bool = False  # NAME=value operands
    lone_dash: bool = False  # `-` is a flag that ends the options


class Unwrapped(Struct, frozen=True):
    """`taken` words belong to the wrapper; what it sets for the command is in `assignments`.

    `assigns` tells that it takes every word with `=` in the place of the command for something to set.
    """

    taken: int
    assignments: tuple[tuple[str, Word], ...] = ()
    assigns: bool = False


_WRAPPERS: Final[dict[str, _Options]] = {
    "env": _Options(
        word_list("-i --ignore-environment"), word_list("-u --unset"), assigns=True, lone_dash=True
    ),
    "nice": _Options(valued=word_list("-n --adjustment"), numeric=True),
    "timeout": _Options(
        word_list("-v --verbose -f --foreground -p --preserve-status"),
        word_list("-s --signal -k --kill-after"),
        operands=1,
    ),
    "nohup": _Options(),
    "stdbuf": _Options(valued=word_list("-i --input -o --output -e --error")),
    "ionice": _Options(word_list("-t --ignore"), word_list("-c --class -n --classdata")),
}
# Package runners by the words that begin them; `npm` takes options behind the name for itself, up to `--`.
_RUNNERS: Final[dict[tuple[str, ...], _Options]] = {
    ("npx",): _Options(word_list("--no --no-install -y --yes -q --quiet --offline --prefer-offline")),
    ("bunx",): _Options(word_list("--no-install")),
    ("pnpm", "exec"): _Options(),
    ("npm", "exec"): _Options(word_list("--no --yes -y --offline --prefer-offline")),
    ("npm", "x"): _Options(word_list("--no --yes -y --offline --prefer-offline")),
}
_RUNNER_NAMES: Final = frozenset(begin[0] for begin in _RUNNERS)
_TAKES_LATER_OPTIONS: Final = "npm"
_NUMBER: Final = re.compile(r"-{1,2}\d+")
_BIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def unwrap(name: str, words: Sequence[Word]) -> Unwrapped | None:
    """Find the command behind a wrapper; None where an option is unknown or there is no command."""
    wrapper = _WRAPPERS.get(name)
    at = _options(wrapper, words, 1) if wrapper else None
    if wrapper is None or at is None:
        return None
    at += wrapper.operands
    assignments: list[tuple[str, Word]] = []
    while wrapper.assigns and at < len(words) and "=" in words[at].value:
        set_name, _, value = words[at].value.partition("=")
        if not words[at].literal or not NAME.fullmatch(set_name):
            return None
        assignments.append((set_name, Word(value, value)))
        at += 1
    if not _begins_command(words, at):
        return None
    return Unwrapped(at, tuple(assignments), wrapper.assigns)


class Packaged(Struct, frozen=True):
    """A package runner, as `npx` or `npm exec`, and at which word the name of what it runs stands."""

    runner: str
    at: int


def packaged(words: Sequence[Word]) -> Packaged | None:
    """Find the name that a package runner is given; None for unknown options and what is no plain name."""
    if words[0].value not in _RUNNER_NAMES:
        return None
    typed = tuple(word.value for word in words[:2])
    begin = next((begin for begin in (typed[:1], typed) if begin in _RUNNERS), None)
    at = _options(_RUNNERS[begin], words, len(begin)) if begin else None
    if begin is None or at is None or not _begins_command(words, at) or not _BIN.fullmatch(words[at].value):
        return None
    takes_more = begin[0] == _TAKES_LATER_OPTIONS and words[at - 1].value != "--"
    if takes_more and any(word.value.startswith("-") for word in words[at + 1 :]):
        return None
    return Packaged(" ".join(begin), at)


def _begins_command(words: Sequence[Word], at: int) -> bool:
    return at < len(words) and all(word.literal for word in words[: at + 1])


def _options(known: _Options, words: Sequence[Word], at: int) -> int | None:
    while at < len(words) and words[at].value.startswith("-"):
        option = words[at].value
        if option == "--" or (option == "-" and known.lone_dash):
            return at + 1
        taken = _option(known, option)
        if taken is None:
            return None
        at += taken
    return at


def _option(known: _Options, option: str) -> int | None:
    """Tell how many words an option takes; None for one that is not known."""
    if known.numeric and _NUMBER.fullmatch(option):
        return 1
    if not option.startswith("--"):
        return _cluster(known, option[1:])
    name, joined, _ = option.partition("=")
    if name in known.valued:
        return 1 if joined else 2
    return 1 if name in known.flags and not joined else None


def _cluster(known: _Options, letters: str) -> int | None:
    """Read `-abVALUE`: flags up to the first that takes a value, which is the rest or the next word."""
    for index, letter in enumerate(letters):
        if f"-{letter}" in known.valued:
            return 1 if letters[index + 1 :] else 2
        if f"-{letter}" not in known.flags:
            return None
    return 1 if letters else None
