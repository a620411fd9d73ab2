"""JSON-RPC 2.0, one object a line, without any I/O."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from typing import Any, NoReturn

LINE_LIMIT = 1024 * 1024
DEPTH_LIMIT = 64
VALUES_LIMIT = 5_000  # in one line; the longest command has 4,096 words
# What is read at once: more would keep everybody else waiting, as nothing interrupts the reader written in C.
_AT_ONCE = 64 * 1024
_VALUES_AT_ONCE = 2_000
_MOST_DIGITS = 100

_SIGN = re.compile(
    r'"(?:[^"\\]++|\\.)*+"?|[,\[{]', re.DOTALL
)  # a string as a whole, or what separates values
_SEPARATORS = frozenset(",[{")


class Code(IntEnum):
    """What an error object's `code` says; -32099 to -32000 are Sayso's own, the others JSON-RPC's."""

    PARSE = -32700  # not JSON, or JSON that is refused: NaN, duplicate keys, lone surrogates, too deep
    INVALID_REQUEST = -32600  # JSON, but not one JSON-RPC 2.0 call
    UNKNOWN_METHOD = -32601
    INVALID_PARAMS = -32602  # `data.field` names the parameter
    INTERNAL = -32603
    UNAUTHENTICATED = -32001  # no hello yet, or a token that is unknown or revoked
    NOT_PERMITTED = -32002  # the role does not carry this method
    UNKNOWN_REQUEST = -32003
    NOT_AVAILABLE = -32004  # a method that this version names but does not answer
    LINE_TOO_LONG = -32005
    BUSY = -32006
    PASSPHRASE_NEEDED = -32008  # `operator.unlock` first
    FAILED = -32007  # known, well-formed, and yet it could not be done; nothing of it was done


CallId = str | int


class RpcError(Exception):
    """An answer that is an error object."""

    def __init__(
        self, code: Code, message: str, *, field: str | None = None, call_id: CallId | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field
        self.call_id = call_id


@dataclass(frozen=True, slots=True)
class Call:
    """One call; `params` are named, JSON-RPC's positional form is refused."""

    id: CallId
    method: str
    params: Mapping[str, Any]


def is_large(line: bytes) -> bool:
    """Tell whether reading a line may take milliseconds, so that it belongs in a thread."""
    return len(line) > _AT_ONCE or sum(map(line.count, (b",", b"[", b"{"))) > _VALUES_AT_ONCE


def decode(line: bytes, most_values: int = VALUES_LIMIT) -> Call:
    """Read one call; raises RpcError, also for a large one with more than `most_values`."""
    value = _parse(line, most_values)
    if isinstance(value, list):
        raise RpcError(Code.INVALID_REQUEST, "batches are not supported; send one object a line")
    if not isinstance(value, dict):
        raise RpcError(Code.INVALID_REQUEST, "a call is a JSON object")
    return _call(value)


def _call(value: dict[str, Any]) -> Call:
    call_id = value.get("id")
    if isinstance(call_id, bool) or not isinstance(call_id, str | int):
        raise RpcError(Code.INVALID_REQUEST, "id must be a string or an integer", field="id")

    def refuse(message: str, field: str) -> NoReturn:
        raise RpcError(Code.INVALID_REQUEST, message, field=field, call_id=call_id)

    if value.get("jsonrpc") != "2.0":
        refuse('jsonrpc must be "2.0"', "jsonrpc")
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str) or not method:
        refuse("method must be a string that is not empty", "method")
    if not isinstance(params, dict):
        refuse("params must be an object with named parameters", "params")
    for key in value.keys() - {"jsonrpc", "id", "method", "params"}:
        refuse(f"{key} is not a member of a call", key)
    return Call(call_id, method, params)


def _bound(text: str, most_values: int) -> None:
    """Raise ValueError for too many values, before any of them is made: they are made all in one go."""
    separators = (found for found in _SIGN.finditer(text) if found[0] in _SEPARATORS)
    if next(islice(separators, most_values, None), None) is not None:
        raise ValueError(f"it holds more than {most_values} values; send less at once")


def _parse(line: bytes, most_values: int) -> Any:  # noqa: ANN401 - any JSON value
    try:
        text = line.decode("utf-8")
        if is_large(line):
            _bound(text, most_values)
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise RpcError(Code.PARSE, f"the line is not acceptable JSON: {_why(error)}") from None
    _check_tree(value)
    return value


def _why(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 at byte {error.start}"
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    return str(error)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    counted = Counter(key for key, _ in pairs)
    twice = next(key for key, count in counted.items() if count > 1)
    raise ValueError(f"the key {twice!r} is given twice")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:  # of many, each takes as long as many others together
        raise ValueError(f"the number {text[:40]} is out of range")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if math.isfinite(number):
        return number
    raise ValueError(f"the number {text[:40]} is out of range")


def _check_tree(root: Any) -> None:  # noqa: ANN401 - any JSON value
    level = [root]
    for _ in range(DEPTH_LIMIT):
        level = [child for value in level for child in _children(value)]
        if not level:
            return
    raise _too_deep()


def _children(value: Any) -> Iterator[Any]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        for key in value:
            _check_text(key)
        yield from value.values()


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise RpcError(
            Code.PARSE, "the line is not acceptable JSON: a string holds half of a surrogate pair"
        ) from None


def _too_deep() -> RpcError:
    return RpcError(Code.PARSE, f"the line is not acceptable JSON: it nests deeper than {DEPTH_LIMIT} levels")


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def encode_result(call_id: CallId, result: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Write the answer to a call."""
    return _line({"jsonrpc": "2.0", "id": call_id, "result": result})


def encode_error(error: RpcError, call_id: CallId | None = None) -> bytes:
    """Write an error object; without an id it belongs to no call that could be read."""
    body: dict[str, Any] = {"code": int(error.code), "message": error.message}
    if error.field is not None:
        body["data"] = {"field": error.field}
    return _line({"jsonrpc": "2.0", "id": call_id if call_id is not None else error.call_id, "error": body})


def encode_notification(method: str, params: Mapping[str, Any]) -> bytes:
    """Write a message that wants no answer."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


class LineReader:
    """Cuts a byte stream into lines; of a line over the limit only the fact remains, as None."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Take bytes and return the lines that they end; None once for each line that is too long."""
        *ended, rest = data.split(b"\n")
        lines: list[bytes | None] = []
        for part in ended:
            self._keep(part, lines)
            if not self._skipping:
                lines.append(bytes(self._kept))
            self._kept.clear()
            self._skipping = False
        self._keep(rest, lines)
        return lines

    def _keep(self, part: bytes, lines: list[bytes | None]) -> None:
        if self._skipping:
            return
        self._kept += part
        if len(self._kept) > self._limit:
            self._kept.clear()
            self._skipping = True
            lines.append(None)


def line_too_long(limit: int = LINE_LIMIT) -> RpcError:
    """Return the error for a line that was skipped."""
    return RpcError(Code.LINE_TOO_LONG, f"the line is longer than {limit} bytes; it was skipped")
