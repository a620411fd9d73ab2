"""Addresses that are not connected to unless they are named."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.arguments.addresses import lifted, readings, special
from core.config.web import HostPattern
from core.model.hosts import read_host

BLOCKED = [
    ("169.254.169.254", "link-local: 169.254.169.254 is where clouds keep credentials"),
    ("169.254.170.2", "clouds keep credentials"),
    ("100.100.100.200", "clouds keep credentials"),
    ("168.63.129.16", "cloud metadata"),
    ("fd00:ec2::254", "clouds keep credentials"),
    ("10.0.0.0", "private"),
    ("10.255.255.255", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.1.1", "private"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("169.254.0.1", "link-local"),
    ("100.64.0.1", "carrier-grade NAT"),
    ("100.127.255.255", "carrier-grade NAT"),
    ("0.0.0.0", "unspecified"),  # noqa: S104 - an address to refuse, none to listen on
    ("0.1.2.3", "this network"),
    ("255.255.255.255", "broadcast"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved"),
    ("192.0.0.1", "reserved"),
    ("192.0.2.1", "documentation"),
    ("198.51.100.1", "documentation"),
    ("203.0.113.1", "documentation"),
    ("198.18.0.1", "benchmarks"),
    ("192.88.99.1", "6to4"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("fe80::1", "link-local"),
    ("febf::1", "link-local"),
    ("fec0::1", "site-local"),
    ("fc00::1", "unique local"),
    ("fdff::1", "unique local"),
    ("ff02::1", "multicast"),
    ("ff0e::1", "multicast"),
    ("2001:db8::1", "documentation"),
    ("3fff::1", "documentation"),
    ("100::1", "discarded"),
    ("5f00::1", "segment routing"),
    ("4000::1", "not an address of the public internet"),
    ("::127.0.0.1", "IPv4-compatible"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:10.0.0.1", "private"),
    ("::ffff:169.254.169.254", "clouds keep credentials"),
    ("::ffff:0:127.0.0.1", "translated"),
    ("64:ff9b::127.0.0.1", "it carries 127.0.0.1, loopback"),
    ("64:ff9b::a9fe:a9fe", "clouds keep credentials"),
    ("64:ff9b:1::a00:1", "NAT64 of a local network"),
    ("2002:7f00:1::", "6to4"),
    ("2002:a9fe:a9fe::1", "6to4"),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
    ("2a00:1450:4001:81b:0:5efe:a00:1", "it carries 10.0.0.1, private"),
    ("2a00:1450:4001:81b:200:5efe:7f00:1", "it carries 127.0.0.1, loopback"),
]


@pytest.mark.parametrize(("text", "why"), BLOCKED)
def test_a_special_address_is_blocked_and_named(text: str, why: str) -> None:
    block = special(ipaddress.ip_address(text))
    assert block is not None
    assert why in block.reason


@pytest.mark.parametrize(
    "text",
    [
        "9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0",
        "126.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.0", "100.63.255.255", "100.128.0.0",
        "223.255.255.255", "1.1.1.1", "140.82.121.4", "168.63.129.15", "2606:4700:4700::1111",
        "2a00:1450:4001:81b::200e", "::ffff:1.1.1.1", "64:ff9b::101:101", "2001:db7::1",
    ],
)  # fmt: skip
def test_its_public_neighbours_are_not(text: str) -> None:
    assert special(ipaddress.ip_address(text)) is None


@given(st.ip_addresses(v=4))
def test_what_the_standard_library_does_not_call_global_is_blocked(address: ipaddress.IPv4Address) -> None:
    if not address.is_global or address.is_multicast:
        assert special(address) is not None


@given(st.ip_addresses(v=6))
def test_so_it_is_for_ipv6(address: ipaddress.IPv6Address) -> None:
    if not address.is_global or address.is_multicast or address.is_site_local:
        assert special(address) is not None


@given(st.sampled_from([text for text, _ in BLOCKED if "." in text and ":" not in text]), st.data())
def test_no_form_that_carries_a_blocked_address_is_public(text: str, data: st.DataObject) -> None:
    inner = int(ipaddress.IPv4Address(text))
    prefix = data.draw(st.integers(0x2000, 0x3FFF)) << 112
    forms = [
        (0xFFFF << 32) | inner,
        inner,
        (0xFFFF << 48) | inner,
        (0x0064FF9B << 96) | inner,
        (0x2002 << 112) | (inner << 80),
        (0x20010000 << 96) | (inner ^ 0xFFFFFFFF),
        prefix | (0x5EFE << 32) | inner,
        prefix | (0x02005EFE << 32) | inner,
    ]
    for form in forms:
        assert special(ipaddress.IPv6Address(form)) is not None, ipaddress.IPv6Address(form)


def test_readings_give_the_carried_address_too() -> None:
    assert list(map(str, readings(ipaddress.ip_address("64:ff9b::8.8.8.8")))) == [
        "64:ff9b::808:808",
        "8.8.8.8",
    ]
    assert list(map(str, readings(ipaddress.ip_address("2002:808:808::1")))) == ["2002:808:808::1", "8.8.8.8"]
    assert list(map(str, readings(ipaddress.ip_address("::ffff:8.8.8.8")))) == ["8.8.8.8"]
    assert list(map(str, readings(ipaddress.ip_address("8.8.8.8")))) == ["8.8.8.8"]


@pytest.mark.parametrize(
    ("address", "host", "entry", "opens"),
    [
        ("10.1.2.3", "10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.1.2.3", "10.1.0.0/16", True),
        ("10.1.2.3", "10.1.2.3", "10.2.0.0/16", False),
        ("10.1.2.3", "10.1.2.3", "0.0.0.0/0", False),
        ("10.1.2.3", "10.1.2.3", "*", False),
        ("10.1.2.3", "intranet.corp", "intranet.corp", True),
        ("10.1.2.3", "intranet.corp", "*.corp", False),
        ("10.1.2.3", "intranet.corp", "*", False),
        ("10.1.2.3", "a.intranet.corp", "intranet.corp", False),
        ("fd00::5", "intranet.corp", "intranet.corp", True),
        ("127.0.0.1", "localhost", "localhost", True),
        ("::1", "localhost", "localhost", True),
        ("127.0.0.1", "app.localhost", "app.localhost", True),
        ("127.0.0.1", "github.com", "github.com", False),
        ("127.0.0.1", "github.com", "127.0.0.1", True),
        ("127.0.0.1", "notlocalhost", "notlocalhost", False),
        ("169.254.169.254", "metadata.example", "metadata.example", False),
        ("169.254.169.254", "169.254.169.254", "169.254.0.0/16", False),
        ("169.254.169.254", "169.254.169.254", "169.254.169.254", True),
        ("169.254.7.7", "169.254.7.7", "169.254.0.0/16", True),
        ("64:ff9b::a00:1", "nat.example", "10.0.0.0/8", False),
        ("64:ff9b::a00:1", "nat.example", "64:ff9b::a00:1", True),
        ("64:ff9b::a00:1", "nat.example", "64:ff9b::/96", False),
    ],
)
def test_only_an_entry_that_means_it_opens_a_blocked_address(
    address: str, host: str, entry: str, *, opens: bool
) -> None:
    parsed = ipaddress.ip_address(address)
    block = special(parsed)
    assert block is not None
    assert lifted(block, parsed, read_host(host), HostPattern.parse(entry)) is opens


def test_a_range_holds_the_mapped_form_of_its_addresses() -> None:
    ten = HostPattern.parse("10.0.0.0/8")
    assert ten.holds(ipaddress.ip_address("::ffff:10.0.0.1"))
    assert not ten.holds(ipaddress.ip_address("::ffff:11.0.0.1"))
    assert not ten.holds(ipaddress.ip_address("::10.0.0.1"))
