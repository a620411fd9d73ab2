from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.config import Scope
from core.model.session import SessionKey
from core.sandbox.workspace import default_root, directory_for

agents = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True)
parts = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,20}", fullmatch=True)
keys = st.builds(
    SessionKey,
    agents,
    st.just("slack"),
    parts,
    st.lists(parts, max_size=2).map(tuple),
) | agents.map(SessionKey.main)


@given(keys, keys, st.sampled_from(Scope), st.sampled_from(Scope))
def test_two_scopes_or_sessions_never_share_a_directory_by_accident(
    one: SessionKey, other: SessionKey, first: Scope, second: Scope
) -> None:
    same = directory_for("/r", first, one) == directory_for("/r", second, other)
    meant = first is second and (
        first is Scope.SHARED or (first is Scope.AGENT and one.agent == other.agent) or one == other
    )
    assert same is meant


@given(keys, st.sampled_from(Scope))
def test_a_name_is_one_safe_component_below_the_root(key: SessionKey, scope: Scope) -> None:
    path = directory_for("/r", scope, key)
    assert path.startswith("/r/")
    name = path.removeprefix("/r/")
    assert "/" not in name
    assert not name.startswith(".")
    assert len(name) < 128


def test_the_root_for_root_lies_where_another_account_can_get() -> None:
    assert default_root("/home/op/.sayso", is_root=False) == "/home/op/.sayso-workspaces"
    one = default_root("/root/.sayso", is_root=True)
    assert one.startswith("/var/lib/sayso/")
    assert one.endswith("/workspaces")
    assert one != default_root("/root/.sayso2", is_root=True)
