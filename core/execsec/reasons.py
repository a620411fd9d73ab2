"""Why a command needs a person, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from core.display import safe
from core.execsec.allowlist import runs_anything
from core.execsec.pins import cannot_be_pinned, variables
from core.execsec.policy import ExecPolicy
from core.execsec.safe_bins import beyond_input
from core.model.command import CommandFacts, Segment
from core.shell.inline_code import reads_program_from_stdin
from core.shell.names import loads_nothing
from core.shell.piped import takes_program_from_pipe
from core.shell.scripts import NOT_THERE

MOST_REASONS: Final = 3
_EXACT: Final = "; it may run or load others"


def joined(reasons: Iterable[str]) -> str:
    """Say each reason once, of many the first few; what holds for several commands is said once of all."""
    every = tuple(dict.fromkeys(reasons))
    more = len(every) - MOST_REASONS
    rest = (f"and {more} more",) if more > 0 else ()
    return "; ".join((*_grouped(every[:MOST_REASONS]), *rest))


def _grouped(reasons: Iterable[str]) -> Iterator[str]:
    same: dict[str, list[str]] = {}
    for reason in reasons:
        subject, quoted, what = reason.partition("` ") if reason[:1] == "`" else ("", "", "")
        same.setdefault(what or reason, []).append(subject + quoted if what else "")
    for what, (first, *others) in same.items():
        also = f" (so too {' and '.join(map(str.rstrip, others))})" if others else ""
        yield f"{first}{what}{also}"


def may_change(facts: CommandFacts) -> str:
    """Say what no binding holds, so that a yes is given knowing it."""
    changing = filter(None, map(cannot_be_pinned, facts.segments))
    found = next((each for each in changing if not each.endswith(NOT_THERE)), None)
    return f"; {safe(found)} may change before it runs" if found else ""


def why_missed(segment: Segment, policy: ExecPolicy, env: Sequence[tuple[str, str]], *, inline: bool) -> str:
    """Say why nothing admits a segment that no hazard speaks against."""
    if inline:
        return f"`{safe(segment.words[0].value)}` {_why_inline(segment)}"
    path = safe(segment.executable.path if segment.executable else segment.words[0].value)
    if given := variables(segment, env):
        return (
            f"`{path}` could take from {safe(given[0][0])} what it runs, so no entry without that admits it"
        )
    if takes_program_from_pipe(segment):
        return f"`{path}` may take from the pipe what it does, so nothing remembered admits it"
    if runs_anything(segment):
        return f"`{path}` can run anything, so only an entry with these arguments admits it, and none does"
    if segment.executable is not None and not segment.executable.trusted:
        return f"`{path}` lies where others than root can write, so no bare name or glob admits it"
    missed = f"`{path}` with these arguments is on no allowlist{'' if loads_nothing(segment) else _EXACT}"
    return missed + _no_filter(segment, policy) if path.endswith(policy.safe_bins) else missed


def _no_filter(segment: Segment, policy: ExecPolicy) -> str:
    beyond = beyond_input(segment, policy.safe_bins, policy.trusted_dirs, policy.safe_bin_profiles)
    return f", and runs unlisted only as a filter of its input: {safe(beyond)}" if beyond else ""


def _why_inline(segment: Segment) -> str:
    if reads_program_from_stdin(segment):
        return (
            "runs what comes in at its input, so nothing remembered admits it; only an entry with exactly "
            "these arguments that an operator wrote does"
        )
    return "is given code to run, which only an entry with exactly these arguments admits"
