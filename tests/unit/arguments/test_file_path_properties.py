"""Whatever tree of files and links: nothing is admitted whose real path is denied or not allowed."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.resolvers.filesystem import FilesystemResolver
from core.arguments.files import judge_files
from core.arguments.surroundings import surroundings_of
from core.config import Config
from core.model.decision import Effect, strictest

_NAMES = st.sampled_from(["a", "b", "A", "etc", "etc2", "a.", "\u00e9", "e\u0301", ".env"])
_STEPS = st.one_of(_NAMES, st.sampled_from(["..", ".", "", "L1", "L2", "L3"]))
_PATHS = st.lists(_STEPS, min_size=1, max_size=6).map("/".join)
_PATTERN = st.lists(
    st.one_of(_NAMES, st.sampled_from(["*", "**", "?", "e*", "L1", "L2"])), min_size=1, max_size=4
).map("/".join)
_LINKS = st.dictionaries(st.sampled_from(["L1", "L2", "L3", "a/L1", "a/b/L2", "etc/L3"]), _PATHS, max_size=4)
_FILES = st.lists(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), max_size=5)


def _plant(root: Path, files: list[str], links: dict[str, str]) -> None:
    for name in files:
        try:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        except OSError:
            continue
    for name, target in links.items():
        place = root / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target or ".")
        except OSError:
            continue


def _matches(pattern: str, path: str) -> bool:
    """Match part by part, independently of how the product does it."""

    def parts(globs: list[str], names: list[str]) -> bool:
        if not globs:
            return not names
        if globs[0] == "**":
            return any(parts(globs[1:], names[skipped:]) for skipped in range(len(names) + 1))
        if not names:
            return False
        expression = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in globs[0])
        return bool(re.fullmatch(expression, names[0])) and parts(globs[1:], names[1:])

    globs = pattern.strip("/").split("/")
    # `dir/**` is what lies below, and no file of the directory's own name.
    return parts(
        [*globs, "*"] if globs[-1] == "**" and globs != ["**"] else globs, path.strip("/").split("/")
    )


@pytest.mark.parametrize("tool", ["read", "write", "edit"])
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    files=_FILES,
    links=_LINKS,
    path=_PATHS,
    allow=st.lists(_PATTERN, max_size=2),
    deny=st.lists(_PATTERN, max_size=2),
    absolute=st.booleans(),
)
def test_what_is_admitted_is_neither_denied_nor_missed_by_its_real_path(
    tmp_path_factory, tool, files, links, path, allow, deny, absolute
):
    root = tmp_path_factory.mktemp("tree").resolve()
    _plant(root, files, links)
    allowed, denied = ([f"{root}/{pattern}" for pattern in patterns] for patterns in (allow, deny))
    section = {"allow": allowed, "deny": denied}
    config = Config.model_validate({"tools": {"read": section, "write": section}})
    around = surroundings_of(config, "main", workspace=str(root), home="/home/x", protected=())
    asked = f"{root}/{path}" if absolute else path
    judgement = judge_files(tool, {"path": asked}, around, FilesystemResolver())
    if judgement.decisions and strictest(judgement.decisions).effect is Effect.DENY:
        assert judgement.constraints == ()
        return
    real = os.path.realpath(root / asked)
    assert judgement.constraints[0].to_json()["realPath"] == real
    assert not any(_matches(pattern, real) for pattern in denied)
    assert not any(_matches(pattern, os.path.normpath(root / asked)) for pattern in denied)
    # a rule's own directory may be a link, which leads to another one inside the workspace
    led = [_resolved(pattern) for pattern in allowed]
    assert not allowed or any(_matches(pattern, real) for pattern in (*allowed, *led))


def _resolved(pattern: str) -> str:
    parts = pattern.split("/")
    wild = next((index for index, part in enumerate(parts) if set(part) & set("*?")), len(parts))
    return "/".join([os.path.realpath("/".join(parts[:wild]) or "/"), *parts[wild:]])


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(files=_FILES, links=_LINKS, path=_PATHS, deny=st.lists(_PATTERN, max_size=3), more=_PATTERN)
def test_a_further_deny_rule_never_admits_anything(tmp_path_factory, files, links, path, deny, more):
    root = tmp_path_factory.mktemp("tree").resolve()
    _plant(root, files, links)

    def effect(patterns: list[str]) -> Effect:
        config = Config.model_validate({"tools": {"read": {"deny": patterns}}})
        around = surroundings_of(config, "main", workspace=str(root), home="/home/x", protected=())
        decisions = judge_files("read", {"path": path}, around, FilesystemResolver()).decisions
        return strictest(decisions).effect if decisions else Effect.ALLOW

    assert effect([*deny, more]) >= effect(deny)
    assert effect(deny[::-1]) == effect(deny)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(links=_LINKS, path=_PATHS, files=_FILES)
def test_a_confined_tool_never_leaves_the_workspace_nor_reaches_what_is_protected(
    tmp_path_factory, links, path, files
):
    root = tmp_path_factory.mktemp("tree").resolve()
    _plant(root, files, links)
    config = Config.model_validate({"tools": {"fs": {"workspaceOnly": True}}})
    own = str(root / "a" / "etc")
    around = surroundings_of(
        config, "main", workspace=str(root / "a"), home="/home/x", protected=(own,), cwd=str(root)
    )
    judgement = judge_files("write", {"path": path}, around, FilesystemResolver())
    if judgement.constraints:
        real = os.path.realpath(root / path)
        base = os.path.realpath(root / "a")
        assert real == base or real.startswith(base + "/")
        kept = os.path.realpath(own)
        assert real != kept
        assert not real.startswith(kept + "/")


def test_a_judgement_costs_little_more_than_looking_where_the_path_leads(yard):
    path = yard.file("work/src/module/f.py")
    resolver = FilesystemResolver()
    around = yard.around(
        {"tools": {"read": {"allow": ["~/Projects/**", "./**"], "deny": ["~/.ssh/**", "**/.env", "*.pem"]}}}
    )
    plain = yard.around(protected=())
    looking = _best(lambda: resolver.real_path(path))
    judging = _best(lambda: judge_files("read", {"path": path}, plain, resolver))
    ruled = _best(lambda: judge_files("read", {"path": path}, around, resolver))
    assert judging - looking < 200e-6
    assert ruled < 10 * looking + 500e-6


def _best(run) -> float:
    """Return the shortest time of many, which what else the machine does cannot lengthen."""
    times = []
    for _ in range(300):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
