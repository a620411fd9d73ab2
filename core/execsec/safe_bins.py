"""Filters that are admitted without an entry, as long as they read nothing but their input (002 §7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from core.config import SafeBinProfile
from core.execsec.safe_bin_tables import SAFE_BINS, Operand, SafeBin
from core.model.command import Segment
from core.shell.names import names
from core.shell.programs import CARRIERS, PRIVILEGE_CHANGERS, RUNS_ANYTHING

# A filter that reads the environment, or loads other code. A variable's name may stand apart from its `$`.
_FORBIDDEN_FILTER: Final = re.compile(
    r"\b(?:env|ENV|input_filename|include|import|modulemeta|get_search_list|input_line_number|__prog\w*)\b"
)
_PATH_LIKE: Final = re.compile(r"/|^\.|^~|[*?\[]")
_NEVER: Final = CARRIERS | PRIVILEGE_CHANGERS | RUNS_ANYTHING
_COMMON: Final = frozenset(("--help", "--version"))
_NUMBER: Final = re.compile(r"-\d+")


class _Unsafe(Exception):  # noqa: N818 - a finding that ends the reading
    """The arguments are not those of a filter."""


def is_safe_bin(
    segment: Segment,
    allowed: tuple[str, ...],
    trusted_dirs: tuple[str, ...],
    profiles: Mapping[str, SafeBinProfile],
) -> bool:
    """Tell whether the segment is a listed filter from a trusted directory that reads only its input."""
    table = _listed(segment, allowed, trusted_dirs, profiles)
    return table is not None and _reads_only_input(segment.argv[1:], table)


def beyond_input(
    segment: Segment,
    allowed: tuple[str, ...],
    trusted_dirs: tuple[str, ...],
    profiles: Mapping[str, SafeBinProfile],
) -> str | None:
    """Say what keeps a listed filter from running unlisted this time; None where it is none of them."""
    table = _listed(segment, allowed, trusted_dirs, profiles)
    return None if table is None else _beyond(segment.argv[1:], table)


def _beyond(arguments: tuple[str, ...], table: SafeBin) -> str:
    try:
        operands = [value for option, value in _read(arguments, table) if option is None and value != "-"]
    except _Unsafe:
        return "one of its options may do more"
    if table.kind is Operand.FILE and len(operands) > table.operands:
        return f"here it is given the file `{operands[table.operands]}`"
    return "with these arguments it may do more"


def _listed(
    segment: Segment,
    allowed: tuple[str, ...],
    trusted_dirs: tuple[str, ...],
    profiles: Mapping[str, SafeBinProfile],
) -> SafeBin | None:
    executable = segment.executable
    if executable is None or not executable.trusted:
        return None
    directory, _, name = executable.path.rpartition("/")
    if name not in allowed or (directory or "/") not in trusted_dirs:
        return None
    if not segment.literal or names(segment) & _NEVER:
        return None
    return _table(name, profiles.get(name))


def _table(name: str, profile: SafeBinProfile | None) -> SafeBin | None:
    builtin = SAFE_BINS.get(name)
    if profile is None:
        return builtin
    return _own(profile) if builtin is None else _narrowed(builtin, profile)


def _own(profile: SafeBinProfile) -> SafeBin:
    """Make a table for a program of the operator's; what its operands are is not known, so none is a path."""
    denied = frozenset(profile.denied_flags)
    kind = Operand.WORD if profile.max_positional else Operand.FILE
    flags, valued = frozenset(profile.allowed_flags) - denied, frozenset(profile.allowed_value_flags) - denied
    return SafeBin(flags, valued, profile.max_positional, kind, abbreviates=False, stdin_dash=False)


def _narrowed(table: SafeBin, profile: SafeBinProfile) -> SafeBin:
    """Take out of a table what the profile leaves out; what the table does not know stays out."""
    denied = frozenset(profile.denied_flags)
    flags, optional, valued = table.flags - denied, table.optional - denied, table.valued - denied
    if profile.allowed_flags:
        flags, optional = flags & set(profile.allowed_flags), optional & set(profile.allowed_flags)
    if profile.allowed_value_flags:
        valued &= set(profile.allowed_value_flags)
    stated = "max_positional" in profile.model_fields_set
    gone = (table.flags | table.optional | table.valued) - flags - optional - valued
    return replace(
        table,
        flags=flags,
        optional=optional,
        valued=valued,
        others=table.others | gone,
        operands=min(profile.max_positional, table.operands) if stated else table.operands,
    )


def _reads_only_input(arguments: tuple[str, ...], table: SafeBin) -> bool:
    try:
        found = list(_read(arguments, table))
    except _Unsafe:
        return False
    operands = [value for option, value in found if option is None]
    given = {option for option, _ in found if option is not None}
    if table.stdin_dash:
        operands = [operand for operand in operands if operand != "-"]
    few_enough = len(operands) <= table.operands
    required = not table.required or bool(table.required & given)
    return few_enough and required and all(_fits(operand, table) for operand in operands)


def _fits(operand: str, table: SafeBin) -> bool:
    if table.kind is Operand.WORD:
        return not _PATH_LIKE.search(operand)
    return table.kind is Operand.TEXT or not _FORBIDDEN_FILTER.search(operand)


def _read(arguments: tuple[str, ...], table: SafeBin) -> Iterator[tuple[str | None, str]]:
    """Yield (option, value) and (None, operand) as getopt would read them; raises for what is unknown."""
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            yield from ((None, operand) for operand in rest)
            return
        if argument == "-" or not argument.startswith("-"):
            yield None, argument
        elif argument.startswith("--"):
            yield _long(argument, rest, table)
        elif table.numeric and _NUMBER.fullmatch(argument):
            yield "-NUM", argument
        else:
            yield from _cluster(argument[1:], rest, table)


def _long(argument: str, rest: list[str], table: SafeBin) -> tuple[str, str]:
    given, joined, value = argument.partition("=")
    option = _resolved(given, table)
    if option in table.valued:
        return option, value if joined else _take(rest, table.values(option))
    if joined and option not in table.optional:
        raise _Unsafe
    return option, value


def _resolved(given: str, table: SafeBin) -> str:
    safe = table.flags | table.valued | table.optional
    matches = [given] if given in safe else []
    if not matches and table.abbreviates:
        matches = [option for option in safe | table.others | _COMMON if option.startswith(given)]
    if len(matches) != 1 or matches[0] not in safe:
        raise _Unsafe
    return matches[0]


def _cluster(letters: str, rest: list[str], table: SafeBin) -> Iterator[tuple[str, str]]:
    for index, letter in enumerate(letters):
        option = f"-{letter}"
        if option in table.valued:
            joined = letters[index + 1 :]
            yield option, joined or _take(rest, table.values(option))
            return
        if option not in table.flags:
            raise _Unsafe
        yield option, ""


def _take(rest: list[str], count: int) -> str:
    if len(rest) < count:
        raise _Unsafe
    taken = [rest.pop(0) for _ in range(count)]
    return " ".join(taken)
