"""A test question: it takes the way of every question, and cannot become a run.

Three things see to that, each by itself: nobody could come for it (no token can have the name of its agent),
a yes ends it without a grant, and its binding is the one of no command.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from core.approvals.routes import LOCAL_CHANNELS, Route, routes_for
from core.config import ExecApprovals
from core.model.allowlist import AlwaysOffer
from core.model.call import ToolCall
from core.model.command import Placement
from core.model.decision import Decision, Effect, Layer, Obligation
from core.model.plan import Binding
from core.model.request import Request, RequestKind, State
from core.model.session import SessionKey

TESTER = "channels.test"  # agent ids have no dot
COMMAND = "/usr/bin/true"
_DECISION = Decision(
    Layer.APPROVALS,
    Effect.ASK,
    "a test question; nothing will run, whatever you answer",
    "channels.test",
    "sayso channels test",
    frozenset({Obligation.NEVER_REMEMBER, Obligation.NO_FALLBACK}),
)


def is_rehearsal(request: Request) -> bool:
    """Tell whether this is a test question."""
    return request.call.agent == TESTER


def rehearsal(channel: str | None, now: int, timeout_ms: int) -> Request:
    """Make a test question for one channel, or for every chat."""
    request_id = str(uuid.uuid4())
    return Request(
        id=request_id,
        kind=RequestKind.ASK,
        state=State.WAITING,
        call=ToolCall(TESTER, SessionKey.main(TESTER), args={"channel": channel}),
        canonical=COMMAND,
        cwd="/",
        placement=Placement.SANDBOX,
        sandbox="nothing runs",
        verdict=_DECISION.to_json(),
        binding=Binding(f"rehearsal:{request_id}", (("rehearsal", request_id),)),
        created_at=now,
        deadline=now + timeout_ms,
        always=AlwaysOffer(why="a test question leaves nothing behind"),
        obligations=_DECISION.obligations,
    )


def routes_of(
    settings: ExecApprovals, request: Request, open_channels: Sequence[str], paired: Sequence[Route] = ()
) -> tuple[Route, ...]:
    """List where a request is shown; the filters for agents and sessions do not hold for a test question."""
    session = request.call.session
    if not is_rehearsal(request):
        return routes_for(
            settings, agent=session.agent, session=session, open_channels=open_channels, paired=paired
        )
    unfiltered = settings.model_copy(update={"agent_filter": (), "session_filter": ()})
    found = routes_for(
        unfiltered, agent=session.agent, session=session, open_channels=open_channels, paired=paired
    )
    channel = request.call.args.get("channel")
    return tuple(route for route in found if _is_tested(route, channel))


def _is_tested(route: Route, channel: str | None) -> bool:
    return route.channel not in LOCAL_CHANNELS if channel is None else route.channel == channel
