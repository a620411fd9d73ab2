"""The codec: what is not one well-formed call is an error object, and nothing else."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.ingress.jsonrpc import (
    DEPTH_LIMIT,
    VALUES_LIMIT,
    Code,
    LineReader,
    RpcError,
    decode,
    encode_error,
    encode_notification,
    encode_result,
    is_large,
)

GOOD = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": 1}}


def refusal(line: bytes) -> RpcError:
    with pytest.raises(RpcError) as caught:
        decode(line)
    return caught.value


def test_a_well_formed_call_is_read():
    call = decode(json.dumps(GOOD).encode())
    assert (call.id, call.method, dict(call.params)) == (1, "m", {"a": 1})


def test_params_may_be_left_out_and_ids_may_be_text():
    call = decode(b'{"jsonrpc":"2.0","id":"x","method":"m"}')
    assert (call.id, dict(call.params)) == ("x", {})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{", "acceptable JSON"),
        (b"", "acceptable JSON"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e999}', "out of range"),
        (b'{"a": 1, "a": 2}', "'a' is given twice"),
        (b'{"a": {"b": 1, "b": 1}}', "'b' is given twice"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b"[" * (DEPTH_LIMIT + 1) + b"]" * (DEPTH_LIMIT + 1), "deeper than 64"),
        (b"[" * 500_000, "acceptable JSON"),
        (b'{"a":' * 1_000 + b"1" + b"}" * 1_000, "deeper than 64"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "more than 5000 values"),
        (b"[" + b"1," * 400_000 + b"1]", "more than 5000 values"),
        (b'["' + b'\\"' * 400_000, "acceptable JSON"),
        (b"9" * 10_000, "acceptable JSON"),
    ],
)
def test_what_is_not_acceptable_json_is_a_parse_error(line, told):
    error = refusal(line)
    assert error.code is Code.PARSE
    assert told in error.message


def test_nesting_up_to_the_limit_is_read():
    inner = "[" * (DEPTH_LIMIT - 2) + "]" * (DEPTH_LIMIT - 2)
    assert decode(f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{inner}}}}}'.encode())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"[]", "batches are not supported"),
        (json.dumps([GOOD, GOOD]).encode(), "batches are not supported"),
        (b"3", "a call is a JSON object"),
        (b'"hello"', "a call is a JSON object"),
        (b"null", "a call is a JSON object"),
    ],
)
def test_what_is_not_one_object_is_an_invalid_request(line, told):
    error = refusal(line)
    assert error.code is Code.INVALID_REQUEST
    assert told in error.message


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"jsonrpc": "1.0"}, "jsonrpc"),
        ({"method": 3}, "method"),
        ({"method": ""}, "method"),
        ({"params": [1]}, "params"),
        ({"params": None}, "params"),
        ({"id": True}, "id"),
        ({"id": None}, "id"),
        ({"id": 1.5}, "id"),
        ({"more": 1}, "more"),
    ],
)
def test_a_member_of_the_wrong_kind_is_named(change, field):
    error = refusal(json.dumps({**GOOD, **change}).encode())
    assert (error.code, error.field) == (Code.INVALID_REQUEST, field)
    assert error.call_id == (None if field == "id" else 1)


def test_answers_errors_and_notifications_are_one_line_each():
    assert json.loads(encode_result(7, {"a": "\n"})) == {"jsonrpc": "2.0", "id": 7, "result": {"a": "\n"}}
    error = json.loads(encode_error(RpcError(Code.INVALID_PARAMS, "no", field="cwd"), 7))
    assert error == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32602, "message": "no", "data": {"field": "cwd"}},
    }
    note = encode_notification("exec.output", {"data": "a\nb"})
    assert note.count(b"\n") == 1
    assert "id" not in json.loads(note)


def test_an_error_for_an_unreadable_line_has_a_null_id():
    assert json.loads(encode_error(RpcError(Code.PARSE, "no")))["id"] is None


def test_a_line_at_the_limit_is_kept_and_one_over_it_is_skipped_once():
    reader = LineReader(limit=4)
    assert reader.feed(b"abcd\n") == [b"abcd"]
    assert reader.feed(b"abcde\nok\n") == [None, b"ok"]


def test_a_long_line_is_reported_when_it_grows_too_long_and_its_rest_is_dropped():
    reader = LineReader(limit=4)
    assert reader.feed(b"abc") == []
    assert reader.feed(b"def") == [None]
    assert reader.feed(b"more and more") == []
    assert reader.feed(b"end\nok\n") == [b"ok"]


@given(st.lists(st.binary(max_size=12).filter(lambda part: b"\n" not in part)), st.integers(1, 7))
def test_lines_do_not_depend_on_how_the_bytes_arrive(lines, size):
    stream = b"".join(line + b"\n" for line in lines)
    reader = LineReader(limit=6)
    got = [line for at in range(0, len(stream), size) for line in reader.feed(stream[at : at + size])]
    assert got == [line if len(line) <= 6 else None for line in lines]


@given(st.binary(max_size=200))
def test_no_bytes_make_the_codec_fail_otherwise(line):
    with contextlib.suppress(RpcError):
        decode(line)


def test_a_key_given_twice_among_very_many_is_named_at_once():
    members = ",".join(f'"k{number}":1' for number in range(60_000))
    began = time.thread_time()
    with pytest.raises(RpcError, match="the key 'k59999' is given twice"):
        decode(f'{{{members},"k59999":2}}'.encode(), most_values=100_000)
    assert time.thread_time() - began < 2  # each key compared with all before it took minutes


@pytest.mark.parametrize(
    "text", ['"' + "a," * 90_000 + '"', '"' + '\\"[,{' * 40_000 + '"', json.dumps(list(range(4_990)))]
)
def test_signs_inside_a_long_string_are_no_values(text):
    line = f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{text}}}}}'.encode()
    assert is_large(line)
    assert decode(line).params["a"] == json.loads(text)


def test_one_value_more_than_a_line_may_hold_is_refused_and_the_operator_may_send_it():
    line = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": [1] * VALUES_LIMIT}}
    ).encode()
    with pytest.raises(RpcError, match="more than 5000 values; send less at once"):
        decode(line)
    assert len(decode(line, most_values=VALUES_LIMIT + 10).params["a"]) == VALUES_LIMIT
