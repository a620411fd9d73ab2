"""What a person or a program sees while a call is in flight, and when it has ended."""

from __future__ import annotations

import sys
from binascii import a2b_base64

from bot.cli import exits
from bot.cli.terminal import left, note, put_json, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    Json = dict[str, Any]

SHORT = 8


class Follower:
    """Passes output through as bytes, keeps Sayso's own words on stderr, and ends with the exit status."""

    def __init__(self, *, as_json: bool, waits: bool = True) -> None:
        self._as_json = as_json
        self._waits = waits
        self._request_id: str | None = None
        self._runs = False
        self._streamed = False
        self._at_line_start = True

    def notified(self, method: str, params: Json) -> None:
        """Take a notification about the call."""
        if method == "exec.output":
            self._put(params["stream"], a2b_base64(params["data"]))
            self._streamed = True
        elif method == "exec.running":
            self._request_id, self._runs = params["id"], True
        elif method == "exec.approval.requested":
            self._request_id = params["id"]
            if self._waits:
                note(_waits(params), "yellow")

    def left_behind(self) -> None:
        """Say what goes on after Ctrl-C, and how to come back to it."""
        if self._request_id is None:
            note("\ninterrupted before the daemon answered")
            return
        short = self._request_id[:SHORT]
        what = "the command goes on" if self._runs else "the question stays open"
        more = f"; sayso cancel {short} ends it" if self._runs else ""
        note(f"\n{what}: sayso wait {short} joins it again{more}", "yellow")

    def cut_off(self) -> None:
        """Say, where the daemon went away, how to learn what becomes of it."""
        if self._request_id is None:
            return
        short = self._request_id[:SHORT]
        told = "tells how the command ended" if self._runs else "joins the question again, which stays open"
        note(f"once the daemon is back, sayso wait {short} {told}", "yellow")

    def finish(self, outcome: Json) -> int:
        """Show the outcome and return the exit status."""
        if not self._streamed:
            self._put("stdout", outcome["stdout"].encode("utf-8", "surrogateescape"))
            self._put("stderr", outcome["stderr"].encode("utf-8", "surrogateescape"))
        explain(outcome)
        if self._as_json:
            if not self._at_line_start:
                sys.stdout.write("\n")
            put_json(outcome)
        elif outcome["status"] == "pending":
            print(outcome["id"])
        return exits.of_outcome(outcome)

    def _put(self, stream: str, data: bytes) -> None:
        if not data:
            return
        out: BinaryIO = sys.stderr.buffer if stream == "stderr" else sys.stdout.buffer
        out.write(data)
        out.flush()
        if stream != "stderr":
            self._at_line_start = data.endswith(b"\n")


def _waits(card: Json) -> str:
    short = card["id"][:SHORT]
    return f"waiting for a person: {short} (sayso approve {short}), {left(card['deadline'])}"


def explain(outcome: Json) -> None:
    """Say on stderr what the exit status cannot."""
    status = outcome["status"]
    if status == "denied":
        _denied(outcome)
    elif status == "allowed":
        note(f"allowed: {outcome['reason']}", "green")
        for term in terms(outcome.get("decision") or {}):
            note(f"  keep:  {term}")
    elif status == "pending":
        short = (outcome["id"] or "")[:SHORT]
        note(f"a person must decide: sayso wait {short} waits for it")
    elif status == "finished":
        _finished(outcome)
    else:
        note(f"{status}: {outcome['reason']}", "red")
        _hint(_NEXT.get(status, ""), outcome)


def terms(decision: Json) -> list[str]:
    """Say on which terms a yes is given: what whoever carries the call out must keep."""
    return [
        " ".join((row["kind"], *(f"{key}={_plain(row[key])}" for key in row if key != "kind")))
        for row in decision.get("constraints") or ()
    ]


def _plain(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


_NEXT = {
    "expired": "ask again while somebody can answer; approvals.exec.timeout is how long a question waits",
    "failed": "sayso doctor tells whether the sandbox works; sayso show {id} has the details",
    "interrupted": "it is not repeated by itself; ask again if it should run",
}


_BUILT_IN = "built-in"
_BY_RULE = {
    "exec.deny-own-state": "no setting changes it: leave Sayso's own files out of the command",
    "exec.deny-operator-verb": "no setting changes it: only a person may do this, as the operator",
    "exec.not-found": (
        "install the program, or add its directory to tools.exec.pathPrepend, or name it by its path"
    ),
    "exec.cwd": "name a directory that is there and that the place it runs in shows",
    "exec.new-privileges": "ask for the host with --elevated, or leave --new-privileges out",
    "locked": "sayso unlock ends it",
    "revoked": "sayso agent add makes a new token",
    "denied-always": "sayso permissions revoke takes it back",
}


def _finished(outcome: Json) -> None:
    if outcome.get("timedOut"):
        note("the command ran into its time limit and was ended", "red")
    for stream, count in (outcome.get("truncated") or {}).items():
        if count:
            note(f"{stream}: {count} bytes are not kept in the outcome")
    for text in outcome.get("notes") or ():
        note(text, "red")


def _denied(outcome: Json) -> None:
    decision = outcome.get("decision") or {}
    approval = outcome.get("approval") or {}
    overruled = str(approval.get("decision", "")).startswith("allow")
    if approval.get("by") and not overruled:
        note(f"denied by {approval['by']}: {approval.get('reason') or 'no reason was given'}", "red")
    else:
        note(f"denied: {outcome['reason']}", "red")
    if decision.get("rule") and not overruled:
        note(f"  rule:  {decision['rule']}")
        note(f"  where: {_where(decision)}")
    _hint(_next_step(outcome, decision), outcome)


def _where(decision: Json) -> str:
    source, where = decision.get("source") or _BUILT_IN, decision.get("where")
    return f"{source} ({where})" if where and where != source else str(source)


def _next_step(outcome: Json, decision: Json) -> str:
    if exits.nobody_to_ask(outcome):
        return "configure who is asked (channels, approvals.exec), then sayso doctor"
    if str((outcome.get("approval") or {}).get("decision", "")).startswith("allow"):
        return "it was allowed, and then refused before it began; sayso show {id} has both"
    if decision.get("effect") == "ask":
        return "a person said no; sayso show {id} has who, when and why"
    what = _lifted_by(str(decision.get("rule", "")), str(decision.get("source") or _BUILT_IN))
    show = "sayso show {id} has the whole decision"
    if not outcome.get("id"):
        show = "sayso explain shows the whole decision for a command"
    return f"{show}; {what}" if what else show


def _lifted_by(rule: str, source: str) -> str:
    """Say what would bring another answer: for some rules no setting does."""
    if rule in _BY_RULE:
        return _BY_RULE[rule]
    if source.startswith("tools.exec.onUnanalysable"):
        return "write it without that; with onUnanalysable: ask a person may allow it once"
    if source == _BUILT_IN:
        return "no setting changes it" if rule.startswith("exec.") else ""
    return "changing it takes the configuration"


def _hint(text: str, outcome: Json) -> None:
    if text:
        note("  next:  " + shown(text.replace("{id}", (outcome.get("id") or "")[:SHORT])))
