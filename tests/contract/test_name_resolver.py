"""What every NameResolver promises."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time

import pytest

from adapters.resolvers.names import SystemNameResolver
from core.ports import NameResolver


def rows(*addresses: str) -> list[tuple]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]


class NameServer:
    """Answers as getaddrinfo does; names beginning with `slow` wait until they are let go."""

    def __init__(self, **answers: list[tuple]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.let_go = threading.Event()

    def __call__(self, host: str, _port: object, **_hints: object) -> list[tuple]:
        self.asked.append(host)
        if host.startswith("slow"):
            self.let_go.wait(30)
        if host not in self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return self.answers[host]


class Steady:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def opened():
    """Make resolvers over a name server; all are closed and every waiting look-up is let go at the end."""
    made = []

    def make(server: NameServer, **settings) -> SystemNameResolver:
        resolver = SystemNameResolver(server, **settings)
        made.append((resolver, server))
        return resolver

    yield make
    for resolver, server in made:
        server.let_go.set()
        resolver.close()


@pytest.fixture
def system() -> NameResolver:
    resolver = SystemNameResolver()
    yield resolver
    resolver.close()


def test_localhost_is_found_in_the_hosts_file(system: NameResolver) -> None:
    found = system.addresses("localhost")
    assert found
    assert all(ipaddress.ip_address(address).is_loopback for address in found)


@pytest.mark.parametrize("host", ["nothing.invalid", "", "a..b", "x" * 70, "x\0y", "\ud800", "two words"])
def test_what_does_not_exist_or_is_no_name_has_no_address(system: NameResolver, host: str) -> None:
    assert system.addresses(host) == ()


def test_all_addresses_are_given_once_and_canonical(opened) -> None:
    server = NameServer(two=rows("2001:DB8:0::1", "192.0.2.7", "192.0.2.7", "fe80::1%eth0"))
    assert opened(server).addresses("two") == ("2001:db8::1", "192.0.2.7", "fe80::1")


def test_an_answer_with_something_that_is_no_address_is_no_answer(opened) -> None:
    assert opened(NameServer(odd=rows("192.0.2.7", "nonsense"))).addresses("odd") == ()


def test_an_answer_that_does_not_come_in_time_is_none(opened) -> None:
    resolver = opened(NameServer(slow=rows("192.0.2.7")), timeout_s=0.05)
    began = time.monotonic()
    assert resolver.addresses("slow") == ()
    assert time.monotonic() - began < 2


def test_a_name_that_hangs_does_not_hold_up_another_and_takes_one_thread(opened) -> None:
    server = NameServer(fast=rows("192.0.2.7"))
    resolver = opened(server, timeout_s=0.05, threads=2)
    for _ in range(5):
        assert resolver.addresses("slow") == ()
    assert server.asked == ["slow"]
    assert resolver.addresses("fast") == ("192.0.2.7",)


def test_with_every_thread_waiting_a_new_name_has_no_answer_until_one_is_free(opened) -> None:
    server = NameServer(fast=rows("192.0.2.7"))
    resolver = opened(server, timeout_s=0.05, threads=1)
    assert resolver.addresses("slow") == ()
    assert resolver.addresses("fast") == ()
    assert server.asked == ["slow"]
    server.let_go.set()
    deadline = time.monotonic() + 10
    while not resolver.addresses("fast") and time.monotonic() < deadline:
        pass
    assert resolver.addresses("fast") == ("192.0.2.7",)


def test_an_answer_is_kept_for_the_questions_of_one_call_and_no_longer(opened) -> None:
    clock = Steady()
    server = NameServer(name=rows("192.0.2.7"))
    resolver = opened(server, monotonic=clock, kept_s=2.0)
    assert resolver.addresses("name") == ("192.0.2.7",)
    server.answers["name"] = rows("127.0.0.1")
    clock.now += 1.9
    assert resolver.addresses("name") == ("192.0.2.7",)
    clock.now += 0.2
    assert resolver.addresses("name") == ("127.0.0.1",)
    assert server.asked == ["name", "name"]


def test_once_closed_nothing_is_asked(opened) -> None:
    server = NameServer(name=rows("192.0.2.7"))
    resolver = opened(server)
    resolver.close()
    resolver.close()
    assert resolver.addresses("name") == ()
    assert server.asked == []


def test_closing_answers_those_who_wait(opened) -> None:
    server = NameServer()
    resolver = opened(server, timeout_s=30)
    answers: list[tuple[str, ...]] = []
    waiting = threading.Thread(target=lambda: answers.append(resolver.addresses("slow")))
    waiting.start()
    deadline = time.monotonic() + 10
    while not server.asked and time.monotonic() < deadline:
        time.sleep(0.005)
    resolver.close()
    waiting.join(5)
    assert answers == [()]
