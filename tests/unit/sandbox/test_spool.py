from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import BinaryIO

from hypothesis import given
from hypothesis import strategies as st

from adapters.runners.spool import Spool, open_spool


def _never() -> BinaryIO:
    raise AssertionError("nothing is to be kept")


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 40))
def test_head_and_tail_and_what_was_left_out_add_up(pieces: list[bytes], end: int) -> None:
    spool = Spool(_never, 0, end)
    for piece in pieces:
        spool.write(piece)
    whole = b"".join(pieces)
    text, omitted = spool.text()
    assert spool.total == len(whole)
    if len(whole) <= 2 * end:
        assert (text, omitted) == (whole.decode("utf-8", "replace"), 0)
    else:
        assert len(whole) - 2 * end <= omitted <= len(whole) - 2 * end + 8
        assert f"[… {omitted} bytes left out …]" in text


@given(st.text(st.sampled_from("aé€😀"), min_size=30, max_size=90), st.integers(4, 20))
def test_no_character_is_cut_in_two(text: str, end: int) -> None:
    spool = Spool(_never, 0, end)
    spool.write(text.encode())
    shown, omitted = spool.text()
    assert "\N{REPLACEMENT CHARACTER}" not in shown
    if omitted:
        head, tail = shown.split(f"\n[… {omitted} bytes left out …]\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head.encode()) + omitted + len(tail.encode()) == len(text.encode())


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    spool = Spool(_never, 0)
    spool.write(b"a\xffb")
    assert spool.text() == ("a\N{REPLACEMENT CHARACTER}b", 0)


def test_a_full_disk_only_ends_the_file() -> None:
    spool = Spool(partial(Path("/dev/full").open, "wb", buffering=0), 1000)
    spool.write(b"one")
    spool.write(b"two")
    spool.close()
    assert spool.text() == ("onetwo", 0)
    assert (spool.total, spool.kept) == (6, 0)


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("untouched")
    (tmp_path / "r.stdout").symlink_to(target)
    spool = open_spool(tmp_path, "r", "stdout", 100)
    spool.write(b"data")
    spool.close()
    assert target.read_text() == "untouched"
    assert spool.text() == ("data", 0)


def test_a_stream_without_output_leaves_no_file(tmp_path: Path) -> None:
    for stream, data in (("stdout", b"data"), ("stderr", b"")):
        spool = open_spool(tmp_path, "r", stream, 100)
        spool.write(data)
        spool.close()
    assert [path.name for path in tmp_path.iterdir()] == ["r.stdout"]
