"""What is accepted leads to the same host for other readers of URLs as well."""

from __future__ import annotations

import ipaddress
import string
from urllib.parse import urlsplit

import httpx
import yarl
from hypothesis import example, given
from hypothesis import strategies as st

from core.arguments.urls import Target, read_url
from core.model.hosts import HostKind, read_host

_PIECES = [
    "http", "https", "HTTP", "file", ":", "//", "/", "\\", "@", "?", "#", ".", "..", "%2e", "%00", "[", "]",
    "github.com", "evil.example", "127.0.0.1", "::1", "::ffff:", "0x7f", "0177", "1", "443", "0", "xn--",
    "ü", "ß", "。", "\uff11", "\t", "\n", " ", "\u200b", "\u202e", "-", "_", "*", "com", "a" * 64,
    "%25eth0", "&", ";",
]  # fmt: skip
_SHUFFLED = st.lists(st.sampled_from(_PIECES), max_size=12).map("".join)
_LIKELY = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "https", "HTTPS"]),
    st.lists(st.sampled_from(_PIECES[5:]), min_size=1, max_size=5).map("".join),
    st.sampled_from(["", ":443", ":80", ":0", ":", ":99999"]),
    st.sampled_from(["", "/", "/a@b", "?@x", "#@x", "/\\x"]),
)
_ANY = st.one_of(_SHUFFLED, _LIKELY, st.text(max_size=60), st.text(string.printable, max_size=60))


def same_host(text: str | None, target: Target) -> bool:
    """Compare with what another program made of the host, brought to one spelling."""
    if text is None:
        return False
    if target.host.kind is HostKind.IPV6:
        return ipaddress.ip_address(text.strip("[]")) == target.host.address
    return read_host(text).text == target.host.text


@given(_ANY)
@example("https://github.com/@evil.example")
@example("https://github.com.:443/")
@example("http://[::FFFF:127.0.0.1]:8080/x?y#z")
@example("https://bücher.example/")
@example("https://a_b.example/ü")
def test_urllib_httpx_and_yarl_read_the_same_host_scheme_and_port(url: str) -> None:
    target = read_url(url)
    if not isinstance(target, Target):
        return
    split = urlsplit(url)
    assert split.scheme == target.scheme
    assert same_host(split.hostname, target)
    assert (split.port or {"http": 80, "https": 443}[split.scheme]) == target.port
    assert split.username is None
    other = yarl.URL(url)
    assert same_host(other.raw_host, target)
    assert other.port == target.port
    third = httpx.URL(url)
    assert same_host(third.raw_host.decode(), target)
    assert third.scheme == target.scheme


@given(_ANY)
def test_reading_the_origin_again_gives_the_same_target(url: str) -> None:
    target = read_url(url)
    if isinstance(target, Target):
        assert read_url(target.origin) == target
        assert target.origin.isascii()


@given(st.text())
def test_no_text_makes_the_reader_fail(url: str) -> None:
    read_url(url)
    read_url(f"https://{url}/")
