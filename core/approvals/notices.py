"""What people are told without being asked: from what was committed to notices, and to whom. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.approvals.card import outcome_line, settled_line
from core.approvals.elevation import ELEVATION_REFUSED
from core.config import NoticeSettings
from core.display import elide, moment, safe_line, time_left
from core.model.card import Card
from core.model.notice import Notice, NoticeKind
from core.model.request import MIN_PREFIX, AuditEvent, Change, Request, State

SECURITY_PREFIX = "security."
ELEVATED_SET, ELEVATED_RAN = "elevated.set", "elevated.ran"
CHANNEL_FAILED, CHANNEL_RECOVERED = "channel.failed", "channel.recovered"
CUT_OFF = "daemon.cut-off"
_HEAD, _TAIL, _WHOLE = 200, 60, 600
_MOST_NAMED = 10  # runs, or questions, in one notice
_ENDED = (State.FINISHED, State.FAILED, State.INTERRUPTED)
_SECURITY = {
    "security.outsider": "Somebody who may not decide here tried to",
    "security.foreign-button": "A button was pressed that belongs to another message",
    "security.owner-only": "An agent that is not its owner's tried to use a tool for owners",
    "security.own-state": "An agent tried to touch Sayso's own state or configuration",
    "security.wrong-code": "Somebody sent a pairing code that does not count",
    "security.wrong-passphrase": "Somebody gave a wrong passphrase of the operator's, again and again",
    "security.code-shown": "A pairing code got known to others, so it counts no more",
    "security.elevation-attempts": "Somebody who may not elevate tried to, again and again",
    "security.changed-under-run": "A run was killed, because what it began with was changed under it",
    "security.operator-verb": "An agent tried to call one of Sayso's operator commands",
}
_DOES_NOT_WORK = ("does not work", "put this right and restart Sayso; until then nobody is asked there")
_IN_TROUBLE = (
    "has been in trouble",
    "Sayso tries again by itself; until it works, answer on the page or with sayso pending and sayso approve",
)
_COUNTED = {
    NoticeKind.DENIED: ("denial", "denials"),
    NoticeKind.SECURITY: ("security event", "security events"),
    NoticeKind.ASKED_ELSEWHERE: ("question asked elsewhere", "questions asked elsewhere"),
    NoticeKind.FINISHED: ("run that ended", "runs that ended"),
    NoticeKind.CHANNEL: ("notice about a channel", "notices about channels"),
    NoticeKind.REMINDER: ("reminder", "reminders"),
    NoticeKind.ELEVATED: ("notice about elevated mode", "notices about elevated mode"),
    NoticeKind.UNASKED: ("run without asking", "runs without asking"),
}


@dataclass(frozen=True, slots=True)
class Spot:
    """A place within a channel, as that channel names it."""

    channel: str
    place: str


def notices_for(change: Change, settings: NoticeSettings, secrets: Sequence[str] = ()) -> tuple[Notice, ...]:
    """Build what a committed change is told by; kinds that are switched off are left out."""
    return tuple(_notices(change, settings, secrets))


def security_notice(
    event: AuditEvent, settings: NoticeSettings, secrets: Sequence[str] = ()
) -> Notice | None:
    """Build what a security event is told by; None for other events, and where that is switched off."""
    told = event.kind.startswith(SECURITY_PREFIX) and event.kind != ELEVATION_REFUSED
    if not settings.security or not told:
        return None  # one refusal is only recorded; several are an event of their own
    data = event.data or {}
    what = _SECURITY.get(event.kind, "Something happened that the operator should know of")
    name = _line(str(data.get("name", "")), secrets)
    who = " ".join(filter(None, [name, f"({_line(event.actor, secrets)})"]))
    lines = [f"{what} ({_line(event.kind, secrets)})", f"Who: {who}"]
    if data.get("place"):
        lines.append(f"Where: {_line(str(data['place']), secrets)}")
    if data.get("command"):
        lines.append(f"Command: {_line(str(data['command']), secrets)}")
    if data.get("what"):
        lines.append(f"What: {safe_line(str(data['what']), secrets=secrets, head=_WHOLE, tail=_TAIL)}")
    return Notice(NoticeKind.SECURITY, "\n".join(lines), event.request_id)


def elevated_notice(
    event: AuditEvent, settings: NoticeSettings, secrets: Sequence[str] = ()
) -> Notice | None:
    """Build what a change of a session's level, and each run under full, is told by.

    None for other events, and where that is off; break-glass is told all the same.
    """
    data = event.data or {}
    if event.kind not in (ELEVATED_SET, ELEVATED_RAN) or not (settings.elevated or data.get("breakGlass")):
        return None
    session = f"Session: {_line(str(data['session']), secrets)}"
    if event.kind == ELEVATED_RAN:
        command = f"Command: {_line(str(data['command']), secrets)}"
        text = f"Ran on the host without asking: elevated full\n{session}\n{command}"
        return Notice(NoticeKind.UNASKED, text, event.request_id)
    who = f"By: {_line(str(data['name']), secrets)} ({_line(event.actor, secrets)})"
    why = [f"Reason: {_line(str(data['reason']), secrets)}"] if data["reason"] else []
    return Notice(NoticeKind.ELEVATED, "\n".join((_level_line(data), session, who, *why)))


def _level_line(data: Mapping[str, Any]) -> str:
    glass = "Break-glass: elevated" if data["breakGlass"] else "Elevated"
    once = " for its next command alone" if data["once"] else ""
    until = f" until {moment(int(data['until']))}" if data["until"] is not None else ""
    return f"{glass} {data['level']}{once}{until}"


def channel_notice(event: AuditEvent, settings: NoticeSettings, secrets: Sequence[str] = ()) -> Notice | None:
    """Build what a channel's failure or recovery is told by; None for other events, and where that is off.

    The data of such an event names the channel, its state and words, and since when (epoch ms) it fails.
    """
    if not settings.channel or event.kind not in (CHANNEL_FAILED, CHANNEL_RECOVERED):
        return None
    data = event.data or {}
    name, since = _line(str(data["channel"]), secrets).capitalize(), moment(int(data["since"]))
    if event.kind == CHANNEL_RECOVERED:
        return Notice(NoticeKind.CHANNEL, f"{name} works again; it had been in trouble since {since}")
    how, mend = _IN_TROUBLE if data["state"] == "degraded" else _DOES_NOT_WORK
    lines = (f"{name} {how} since {since}", f"Why: {_line(str(data['words']), secrets)}", f"Next: {mend}")
    return Notice(NoticeKind.CHANNEL, "\n".join(lines))


def cut_off_notice(event: AuditEvent, settings: NoticeSettings, secrets: Sequence[str] = ()) -> Notice | None:
    """Build what tells of an end of the daemon that nobody asked for; None for other events, or where off."""
    if event.kind != CUT_OFF or not settings.security:
        return None
    return Notice(NoticeKind.SECURITY, cut_off_text(event, secrets))


def cut_off_text(event: AuditEvent, secrets: Sequence[str] = ()) -> str:
    """Say what is known of such an end: when it was, which runs ended with it, how its questions stand."""
    data = event.data or {}
    runs = [f"{run['id'][:MIN_PREFIX]} ({_line(run['command'], secrets)})" for run in data["runs"]]
    waiting, over = ([each[:MIN_PREFIX] for each in data[kind]] for kind in ("waiting", "over"))
    lines = [
        "Sayso ended without being asked to: it was killed, crashed, or the machine stopped",
        *([f"When: after {moment(data['last'])}, when it last recorded something"] if data["last"] else []),
        f"Back since: {moment(event.at)}",
        f"Runs that ended with it, and are not repeated: {_named(runs)}",
        f"Questions that still wait: {_named(waiting)}",
    ]
    lines += [f"Questions whose time ran out meanwhile: {_named(over)}"] if over else []
    return "\n".join((*lines, "Next: find out who or what ended it; sayso history tells what ran before"))


def _named(each: Sequence[str]) -> str:
    more = f" and {len(each) - _MOST_NAMED} more" if len(each) > _MOST_NAMED else ""
    return f"{', '.join(each[:_MOST_NAMED])}{more}" if each else "none"


def reminder(card: Card, now: int) -> Notice:
    """Build what reminds of a question that nobody has settled yet."""
    lines = [f"Nobody has decided yet: {time_left(card.deadline - now)}"]
    if card.progress:
        lines = [f"Not decided yet: {time_left(card.deadline - now)}", f"Answers: {card.progress}"]
    command = elide(card.command, head=_HEAD, tail=_TAIL).text
    lines += [" · ".join(mark.word for mark in card.marks)] if card.marks else []
    lines += [f"Agent: {card.agent}", f"Command: {command}", f"Answer above, or /approve {card.short_id}"]
    return Notice(NoticeKind.REMINDER, "\n".join(lines), card.request_id)


def elsewhere(
    channel: str, opened: Iterable[str], targets: Sequence[Spot], asked: Sequence[Spot]
) -> tuple[Spot, ...]:
    """List where a channel's trouble is told: in each other channel at its targets, else where it asks."""
    wanted: dict[Spot, None] = {}
    for other in opened:
        if other != channel:
            told = [spot for spot in targets if spot.channel == other]
            wanted |= dict.fromkeys(told or [spot for spot in asked if spot.channel == other])
    return tuple(wanted)


def destinations(
    kind: NoticeKind, request: Request | None, own: Spot | None, targets: Sequence[Spot]
) -> tuple[Spot, ...]:
    """List where a notice goes, each place once: to the session's own chat, and to the targets.

    That something is asked elsewhere is told in the session's own chat alone. A denial by a person is not
    repeated where the copy of its question says so already.
    """
    shown = [Spot(copy.channel, copy.place) for copy in request.copies] if request else []
    if kind is NoticeKind.ASKED_ELSEWHERE:
        return (own,) if own and own not in shown else ()
    wanted = dict.fromkeys([own, *targets] if own and request else targets)
    hidden: Collection[Spot] = shown if kind is NoticeKind.DENIED and request and _by_person(request) else ()
    return tuple(spot for spot in wanted if spot not in hidden)


def repeats(notice: Notice, request: Request | None) -> tuple[str, ...]:
    """Name what makes two notices the same news: one denial often comes many times in a row."""
    if notice.kind is NoticeKind.DENIED and request is not None:
        rule = str(request.verdict.get("rule", ""))
        return (notice.kind, str(request.call.session), rule, request.canonical, settled_line(request))
    if notice.kind is NoticeKind.SECURITY:
        return (notice.kind, notice.text)
    return (notice.kind, notice.request_id or "", notice.text)


def summed_up(kind: NoticeKind, count: int) -> Notice:
    """Build the one line that stands for notices that would have been too many."""
    one, many = _COUNTED[kind]
    return Notice(kind, f"{count} more {one if count == 1 else many} in the last minute")


def _notices(change: Change, settings: NoticeSettings, secrets: Sequence[str]) -> Iterator[Notice]:
    request = change.request
    alarms = [found for event in change.events if (found := security_notice(event, settings, secrets))]
    yield from alarms
    yield from filter(None, (elevated_notice(event, settings, secrets) for event in change.events))
    if settings.denied and request.state is State.DENIED and not alarms:
        yield _notice(NoticeKind.DENIED, request, _denial(request, secrets))
    if settings.finished and request.state in _ENDED:
        line = f"Run {outcome_line(request.state, request.outcome or {})}"
        yield _notice(NoticeKind.FINISHED, request, (_line(line, secrets), *_what(request, secrets)))
    if settings.asked_elsewhere and change.insert and request.state is State.WAITING:
        channels = ", ".join(dict.fromkeys(copy.channel for copy in request.copies))
        line = f"Asked elsewhere: {_line(channels, secrets)}"
        yield _notice(NoticeKind.ASKED_ELSEWHERE, request, (line, *_what(request, secrets)))


def _notice(kind: NoticeKind, request: Request, lines: Iterable[str]) -> Notice:
    return Notice(kind, "\n".join(lines), request.id)


def _denial(request: Request, secrets: Sequence[str]) -> Iterator[str]:
    yield _line(_denied_line(request), secrets)
    yield from _what(request, secrets)
    if not _by_person(request):
        where = request.verdict.get("where") or request.verdict.get("source")
        written = f" ({where})" if where else ""
        yield _line(f"Rule: {request.verdict.get('rule', 'unknown')}{written}", secrets)


def _denied_line(request: Request) -> str:
    if _by_person(request):
        return settled_line(request)
    why = (request.outcome or {}).get("reason") or request.verdict.get("reason") or "no reason was recorded"
    return f"Denied: {why}"


def _by_person(request: Request) -> bool:
    """Tell whether a person said no; a yes that was overruled later is not theirs."""
    return bool(request.resolution and request.resolution.by and request.outcome is None)


def _what(request: Request, secrets: Sequence[str]) -> tuple[str, str]:
    return (
        _line(f"Session: {request.call.session}", secrets),
        f"Command: {_line(request.canonical, secrets)}",
    )


def _line(text: str, secrets: Sequence[str]) -> str:
    """Make one short safe line of a text."""
    return safe_line(text, secrets=secrets, head=_HEAD, tail=_TAIL)
