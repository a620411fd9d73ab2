"""No address leads to a machine that nobody named, however it is written and whatever DNS answers."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.arguments.judgement import ArgumentJudgement
from core.arguments.web import judge_web, web_rules_of
from core.config import Config
from core.model.decision import Effect, strictest

OPEN = Config.model_validate({"tools": {}})
LISTED = Config.model_validate(
    {"tools": {"web_fetch": {"allowedDomains": ["github.com", "*.npmjs.com", "140.82.0.0/16"]}}}
)


class Answers:
    """Gives every name the same addresses."""

    def __init__(self, *addresses: str) -> None:
        self.given = addresses

    def addresses(self, _host: str) -> tuple[str, ...]:
        return self.given


def fetch(url: str, config: Config = OPEN, *addresses: str) -> ArgumentJudgement:
    return judge_web(
        "WebFetch", {"url": url, "prompt": "?"}, web_rules_of(config, "main"), Answers(*addresses)
    )


def refused(judgement: ArgumentJudgement) -> bool:
    return strictest(judgement.decisions).effect is Effect.DENY and judgement.constraints == ()


def pinned(judgement: ArgumentJudgement) -> list[str]:
    return [
        address
        for constraint in judgement.constraints
        if constraint.kind == "connect-to"
        for address in dict(constraint.values)["addresses"]
    ]


FORMS = {
    "127.0.0.1": """
        127.0.0.1 2130706433 0x7f000001 017700000001 0x7f.0.0.1 0177.0.0.1 127.1 127.0.1 127.0.0.1. [::1]
        [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::127.0.0.1] [2002:7f00:1::]
        [0:0:0:0:0:0:0:1]
        localhost LOCALHOST localhost. localtest.example \uff11\uff12\uff17.0.0.1 127\u30020\u30020\u30021
        %31%32%37.0.0.1 127.0.0.1%00.github.com github.com@127.0.0.1 0.0.0.0 0 [::] 127.255.0.7
    """,
    "169.254.169.254": """
        169.254.169.254 2852039166 0xa9fea9fe 025177524776 0xa9.254.169.254 169.16689662
        [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::]
        metadata.google.internal [fd00:ec2::254] 169.254.169.254.nip.example
    """,
}


@pytest.mark.parametrize(
    ("address", "host"), [(a, host) for a, hosts in FORMS.items() for host in hosts.split()]
)
@pytest.mark.parametrize("port", ["", ":80", ":8717"])
def test_no_spelling_reaches_this_machine_or_the_clouds_metadata(address: str, host: str, port: str) -> None:
    for config in (OPEN, LISTED):
        assert refused(fetch(f"http://{host}{port}/latest/meta-data/", config, address))


@pytest.mark.parametrize(
    "bad", ["127.0.0.1", "10.0.0.1", "::1", "fe80::1", "::ffff:127.0.0.1", "not an address"]
)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_one_bad_answer_among_good_ones_denies(bad: str, position: int) -> None:
    answers = ["140.82.121.4", "93.184.216.34"]
    answers.insert(position, bad)
    assert refused(fetch("https://rebind.example/", OPEN, *answers))


def test_a_listed_name_that_is_made_to_point_at_this_machine_is_refused() -> None:
    assert pinned(fetch("https://github.com/", LISTED, "140.82.121.4")) == ["140.82.121.4"]
    for address in ("127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1"):  # noqa: S104 - not bound
        assert refused(fetch("https://github.com/", LISTED, address))


def test_answers_are_pinned_so_that_a_later_answer_changes_nothing() -> None:
    answers = Answers("140.82.121.4", "2606:50c0:8000::153")
    rules = web_rules_of(OPEN, "main")
    judgement = judge_web("web_fetch", {"url": "https://rebind.example/"}, rules, answers)
    answers.given = ("127.0.0.1",)
    assert pinned(judgement) == ["140.82.121.4", "2606:50c0:8000::153"]
    assert refused(judge_web("web_fetch", {"url": "https://rebind.example/"}, rules, answers))


_TABLE = Config.model_validate(
    {
        "tools": {
            "web_fetch": {"allowedDomains": ["*"]},
            "browser": {"allowedOrigins": ["https://*", "http://*"]},
        }
    }
)
_ADDRESSES = st.lists(st.ip_addresses().map(str), min_size=1, max_size=4)


@given(_ADDRESSES, st.sampled_from([OPEN, _TABLE]), st.sampled_from(["web_fetch", "browser"]))
def test_a_pinned_address_is_always_one_of_the_public_internet(
    addresses: list[str], config: Config, tool: str
) -> None:
    args = (
        {"action": "open", "url": "https://any.example/"}
        if tool == "browser"
        else {"url": "http://a.example"}
    )
    judgement = judge_web(tool, args, web_rules_of(config, "main"), Answers(*addresses))
    for text in pinned(judgement):
        address = ipaddress.ip_address(text)
        assert address.is_global or address in ipaddress.ip_network("64:ff9b::/96")
        assert not address.is_multicast
        assert not address.is_private
    assert bool(pinned(judgement)) != refused(judgement)


_PIECES = [
    "github.com", "npmjs.com", "a.npmjs.com", "evil.example", "evil-", ".", "@", "/", "\\", "?", "#", ":",
    "443", "%2e", "//", "x", "[::1]", "127.0.0.1", "140.82.121.4", "\uff0e", "\u3002", "\t", "-", "xn--",
]  # fmt: skip


@given(
    st.sampled_from(["https://", "http://", "HTTP:", "//", ""]),
    st.lists(st.sampled_from(_PIECES), max_size=6),
)
def test_whatever_is_admitted_leads_to_a_listed_host(start: str, pieces: list[str]) -> None:
    judgement = fetch(start + "".join(pieces), LISTED, "93.184.216.34")
    if refused(judgement):
        return
    hosts = [dict(term.values)["host"] for term in judgement.constraints if term.kind == "connect-to"]
    assert len(hosts) == 1
    listed = hosts[0] == "github.com" or hosts[0].endswith(".npmjs.com") or hosts[0].startswith("140.82.")
    assert listed, hosts


@given(st.text(max_size=80))
def test_no_text_makes_the_judge_fail(text: str) -> None:
    assert fetch(text, LISTED, "127.0.0.1").decisions
    assert fetch(f"https://{text}", OPEN, "127.0.0.1").decisions
