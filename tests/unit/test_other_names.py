"""Which other names a path has, read off tables of mounts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.runners.other_names import MountedAt, names_in, parse_mounts

ROW = "{n} 1 {device} {root} {place} rw,relatime shared:1 - ext4 /dev/vda rw"


def names(path: str, *mounts: tuple[str, str, str]) -> list[str]:
    rows = [ROW.format(n=number, device=d, root=r, place=p) for number, (d, r, p) in enumerate(mounts)]
    return [name for name, _ in names_in(path, parse_mounts("\n".join(rows).encode()))]


def test_a_file_system_that_is_there_once_gives_no_other_name() -> None:
    assert names("/home/u/s", ("8:1", "/", "/"), ("8:2", "/", "/mnt")) == []


@pytest.mark.parametrize(
    ("second", "name"),
    [
        (("8:1", "/", "/mnt"), "/mnt/home/u/s"),
        (("8:1", "/home", "/srv/h"), "/srv/h/u/s"),
        (("8:1", "/home/u/s", "/srv/s"), "/srv/s"),
        (("8:1", "/home/u/s/db", "/srv/db"), "/srv/db"),
        (("8:1", "/home", "/a\\040b\\011c"), "/a b\tc/u/s"),
    ],
)
def test_another_mount_of_the_same_gives_another_name(second: tuple[str, str, str], name: str) -> None:
    assert names("/home/u/s", ("8:1", "/", "/"), second) == [name]


def test_a_name_of_a_part_tells_which_part() -> None:
    whole = MountedAt(b"8:1", "/", "/")
    mounts = (whole, MountedAt(b"8:1", "/home/u/s/db", "/srv/db"), MountedAt(b"8:1", "/home", "/srv/h"))
    assert list(names_in("/home/u/s", mounts)) == [("/srv/db", "db"), ("/srv/h/u/s", "")]


@pytest.mark.parametrize("second", [("8:1", "/home/us", "/m"), ("8:1", "/ho", "/m"), ("8:2", "/home", "/m")])
def test_what_only_begins_alike_is_no_name(second: tuple[str, str, str]) -> None:
    assert names("/home/u/s", ("8:1", "/", "/"), second) == []


def test_the_deepest_mount_above_is_what_a_path_is_on() -> None:
    mounts = (("8:1", "/", "/"), ("8:2", "/@home", "/home"), ("8:2", "/", "/pool"))
    assert names("/home/u/s", *mounts) == ["/pool/@home/u/s"]


parts = st.lists(st.sampled_from(["a", "b", "c d", "e"]), min_size=0, max_size=3)


@given(parts, parts, parts)
def test_a_name_by_a_second_mount_leads_back_to_the_same_place(root: list, rest: list, place: list) -> None:
    """What lies at `place`/`rest` of a mount of `root` is what lies at `root`/`rest` of the file system."""
    whole = MountedAt(b"8:1", "/", "/")
    second = MountedAt(b"8:1", "/" + "/".join(root), "/m/" + "/".join(place))
    path = "/" + "/".join([*root, *rest])
    found = list(names_in(path, (whole, second)))
    expected = ("/m/" + "/".join([*place, *rest])).rstrip("/")
    assert [(name.rstrip("/"), part) for name, part in found] == [(expected, "")]
