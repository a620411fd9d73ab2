"""`sayso audit export`, and `verify --file`: the record as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bot.cli import exits
from bot.cli.moments import add_times, times
from bot.cli.operator import connected
from bot.cli.parser import Parser
from bot.client import Client
from core.audit import Verification, from_row, verify_part
from core.model.request import ChainedEvent

Json = dict[str, Any]


def export(arguments: list[str]) -> int:
    """Print the record, or a part without gaps, one event a line; it is fetched as it is printed."""
    parser = Parser("audit export", "Print the record as JSON lines, oldest first.")
    add_times(parser)
    parser.json_flag()  # it is JSON anyway
    options = vars(parser.parse_args(arguments))
    asked = times(options, "audit export")
    with connected() as client:
        for row in _between(_rows(client), asked["since"], asked["until"]):
            sys.stdout.write(json.dumps(row, allow_nan=False) + "\n")
    sys.stdout.flush()
    return exits.OK


def _rows(client: Client) -> Iterator[Json]:
    after = 0
    while page := client.call("audit.page", {"after": after}):
        yield from page
        after = page[-1]["seq"]


def _between(rows: Iterator[Json], since: int | None, until: int | None) -> Iterator[Json]:
    """Give the run of events from the first at `since` or later to the last before the first at `until`."""
    begun = since is None
    for row in rows:
        begun = begun or row["at"] >= since
        if begun and until is not None and row["at"] >= until:
            return
        if begun:
            yield row


def verify_file(path: str, *, as_json: bool) -> int:
    """Recompute the chain of an exported file, without the daemon; exit 1 where it is broken."""
    seen = _Seen()
    try:
        with Path(path).open(encoding="utf-8") as file:
            found = verify_part(seen.links(file))
    except OSError as error:
        raise exits.UsageError(f"audit verify: {path}: {error.strerror or error}", "audit verify") from None
    except UnicodeDecodeError:
        print(f"{path} is no text, and so no record; sayso audit export writes one")
        return exits.DIFFERENCE
    except (ValueError, RecursionError) as error:
        print(f"{path}, line {seen.line}: it is no event of a record: {error}")
        return exits.DIFFERENCE
    _print(found, seen.first, as_json=as_json)
    return exits.OK if found.ok else exits.DIFFERENCE


class _Seen:
    """Where the reading stands."""

    line = 0
    first = 0

    def links(self, file: Any) -> Iterator[ChainedEvent]:  # noqa: ANN401 - any text stream
        for line in file:
            self.line += 1
            link = from_row(json.loads(line))
            self.first = self.first or link.seq
            yield link


def _print(found: Verification, first: int, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({**found.to_json(), "first": first}))
    elif not found.ok:
        print(f"the file is broken at event {found.broken_at}: {found.problem}")
    elif not first:
        print("the file holds no events")
    else:
        beginning = "from the beginning" if first == 1 else f"what was before event {first} is not in it"
        print(f"the file is whole: events {first} to {found.events}, {beginning}; head {found.head}")
