"""`people`, `required` and their kin: what is read, what is refused, and what is warned of."""

from __future__ import annotations

import pytest
import yaml

from bot.config import load
from bot.config.quorums import people_doubts
from core.approvals.routes import routes_for
from core.approvals.rules import rules_of
from core.config.people import CHANNELS_OF_PEOPLE
from core.elevated.senders import KNOWN_CHANNELS
from core.errors import ConfigError
from core.model.session import SessionKey

TELEGRAM = {"telegram": {"token": "1:x"}}


@pytest.fixture
def read(tmp_path):
    def read(**sections):
        path = tmp_path / "sayso.yaml"
        path.write_text(yaml.safe_dump(sections), "utf-8")
        return load([path], env={})

    return read


def test_people_may_be_in_every_channel_that_senders_know():
    assert CHANNELS_OF_PEOPLE == KNOWN_CHANNELS


def test_each_person_has_ids_on_all_channels(read):
    config = read(people={"Ann": ["telegram:ID:111", "web:operator"], "Bea": ["cli:user:0"]}).config
    people = rules_of(config).people
    assert people.by_id == {("telegram", "111"): "Ann", ("web", "operator"): "Ann", ("cli", "0"): "Bea"}


@pytest.mark.parametrize(
    ("people", "said"),
    [
        ({"Ann": ["telegram:1"], "Bea": ["telegram:id:1"]}, "one id is one person's"),
        ({"Ann": ["id:1"]}, "pins no id"),
        ({"Ann": ["1"]}, "pins no id"),
        ({"Ann": ["telegram:name:Ann"]}, "pins no id"),
        ({"Ann": ["telegram:username:ann"]}, "pins no id"),
        ({"Ann": ["irc:1"]}, "channels: telegram"),
        ({"Ann": "telegram:1"}, "must be a list"),
        ({" Ann": ["telegram:1"]}, "no name to show"),
        ({"A\u202enn": ["telegram:1"]}, "no name to show"),
        ({"A" * 65: ["telegram:1"]}, "no name to show"),
    ],
)
def test_what_pins_no_id_or_names_two_people_is_refused(read, people, said):
    with pytest.raises(ConfigError, match="people") as refused:
        read(people=people)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("required", 0),
        ("required", 21),
        ("required", "two"),
        ("maxDuration", "5s"),
        ("maxDuration", "31d"),
        ("maxDuration", "soon"),
        ("maxDuration", -1),
        ("allowAlways", "maybe"),
        ("reminder", "soon"),
        ("reminder", "5s"),
        ("separationOfDuties", "perhaps"),
    ],
)
def test_what_is_no_such_value_is_refused_by_its_key(read, key, value):
    with pytest.raises(ConfigError, match=f"approvals.exec.{key}"):
        read(approvals={"exec": {key: value}})


@pytest.mark.parametrize(
    ("text", "ms"), [("30m", 1_800_000), ("2h", 7_200_000), (60_000, 60_000), (0, 0), ("0", 0)]
)
def test_a_longest_time_is_written_as_people_type_it_or_in_milliseconds(read, text, ms):
    config = read(approvals={"exec": {"maxDuration": text}}).config
    assert rules_of(config).terms.max_duration_ms == ms


def test_a_target_replaces_the_terms_and_can_only_raise_the_number_of_people(read):
    target = {"channel": "telegram", "to": "-100", "approvers": ["telegram:1"]}
    strict = {**target, "to": "-200", "required": 3, "maxDuration": "10m", "allowAlways": True}
    lax = {**target, "to": "-300", "required": 1}
    settings = read(
        approvals={
            "exec": {"mode": "targets", "required": 2, "allowAlways": False, "targets": [target, strict, lax]}
        }
    ).config.approvals.exec
    routes = routes_for(
        settings, agent="main", session=SessionKey.main("main"), open_channels=["telegram", "web"]
    )
    by_place = {route.place: route for route in routes}
    assert {place: route.required for place, route in by_place.items()} == {
        "-100": 2,
        "-200": 3,
        "-300": 2,
        "": 2,
    }
    assert [by_place[place].terms.allow_always for place in ("-100", "-200", "-300", "")] == [
        False,
        True,
        False,
        False,
    ]
    assert by_place["-200"].terms.max_duration_ms == 600_000
    assert by_place["-200"].terms.duration_by == "approvals.exec.targets[1].maxDuration"
    assert by_place["-100"].terms.always_by == "approvals.exec.allowAlways"


@pytest.mark.parametrize(
    ("people", "approvers", "possible"),
    [
        ({"Ann": ["telegram:1"], "Bea": ["telegram:2"]}, ["telegram:1", "telegram:2"], True),
        ({"Ann": ["telegram:1"], "Bea": ["cli:0"]}, ["telegram:1"], True),
        ({"Ann": ["telegram:1"], "Bea": ["telegram:2"]}, ["telegram:1"], False),
        ({"Ann": ["telegram:1", "cli:0"]}, ["telegram:1"], False),
        ({"Ann": ["telegram:1"], "Bea": ["discord:2"]}, ["telegram:1", "discord:2"], False),
        ({}, ["telegram:1"], False),
    ],
)
def test_a_quorum_that_cannot_be_met_is_told_at_load(read, people, approvers, possible):
    loaded = read(
        people=people,
        channels=TELEGRAM,
        approvals={"exec": {"required": 2, "mode": "both", "approvers": approvers}},
    )
    told = [warning for warning in loaded.warnings if "different people must say yes" in warning]
    assert bool(told) == (not possible)
    if told:
        assert told[0].startswith("approvals.exec.required: 2 different people")


def test_a_page_that_others_could_open_as_somebody_is_told_at_load(read):
    apart = read(people={"Ann": ["web:operator"], "Bea": ["cli:0"]})
    assert any("Bea can make a login link" in warning for warning in apart.warnings)
    together = read(people={"Ann": ["web:operator", "cli:0"], "Bea": ["telegram:2"]})
    assert not any("login link" in warning for warning in together.warnings)


def test_a_page_login_that_is_not_there_is_told_at_load(read):
    assert any("names nobody: the page is web:operator" in w for w in read(people={"A": ["web:a"]}).warnings)


@pytest.mark.parametrize("value", ["5s", "0h", "forever", "30"])
def test_a_retention_that_is_no_time_is_told_how_to_write_one(read, value):
    with pytest.raises(ConfigError) as refused:
        read(approvals={"retention": value})
    assert "approvals.retention" in str(refused.value)
    assert "must be a number of hours or days, such as 12h or 30d" in str(refused.value)


@pytest.mark.parametrize(
    ("people", "separate", "doubted"),
    [
        ({"Ann": ["telegram:1"]}, True, True),
        ({"Ann": ["telegram:1", "web:operator"]}, True, False),
        ({"Ann": ["telegram:1"]}, False, False),
    ],
)
def test_a_page_of_nobody_is_told_where_duties_are_separated(read, people, separate, doubted):
    config = read(people=people, approvals={"exec": {"separationOfDuties": separate}}).config
    told = [text for text in people_doubts(config) if text.startswith("approvals.exec.separationOfDuties:")]
    assert bool(told) == doubted
