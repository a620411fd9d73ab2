"""What every Resolver promises."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from adapters.resolvers.filesystem import FilesystemResolver
from core.ports import Resolver


@pytest.fixture
def resolver() -> Resolver:
    return FilesystemResolver()


def program(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_bare_name_is_found_on_the_path_in_order(resolver: Resolver, tmp_path: Path) -> None:
    program(tmp_path / "b" / "tool")
    first = program(tmp_path / "a" / "tool")
    found = resolver.find("tool", path=(f"{tmp_path}/a", f"{tmp_path}/b"), cwd="/")
    assert found is not None
    assert (found.name, found.path) == ("tool", str(first))


def test_what_cannot_be_executed_is_passed_over(resolver: Resolver, tmp_path: Path) -> None:
    program(tmp_path / "a" / "tool", mode=0o644)
    (tmp_path / "b" / "tool").mkdir(parents=True)
    third = program(tmp_path / "c" / "tool")
    found = resolver.find("tool", path=[f"{tmp_path}/{d}" for d in "abc"], cwd="/")
    assert found is not None
    assert found.path == str(third)


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin"])
def test_relative_path_entries_never_match(resolver: Resolver, tmp_path: Path, entry: str) -> None:
    program(tmp_path / "tool")
    program(tmp_path / "bin" / "tool")
    assert resolver.find("tool", path=(entry,), cwd=str(tmp_path)) is None


def test_a_name_with_a_slash_is_relative_to_the_directory(resolver: Resolver, tmp_path: Path) -> None:
    tool = program(tmp_path / "bin" / "tool")
    for name in ("bin/tool", "./bin/tool", "bin/../bin/tool", str(tool)):
        found = resolver.find(name, path=(), cwd=str(tmp_path))
        assert found is not None
        assert (found.path, found.real_path) == (str(tool), str(tool))


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/", "bin/", "a\0b", "nonesuch", "./nonesuch", "tool/x", "\ud800", "x" * 5000]
)
def test_what_is_not_there_or_not_a_name_is_none(resolver: Resolver, tmp_path: Path, name: str) -> None:
    program(tmp_path / "tool")
    assert resolver.find(name, path=(str(tmp_path),), cwd=str(tmp_path)) is None


def test_links_are_followed_and_the_name_used_is_kept(resolver: Resolver, tmp_path: Path) -> None:
    real = program(tmp_path / "lib" / "tool-1.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").symlink_to(real)
    (tmp_path / "sbin").symlink_to(tmp_path / "bin")
    found = resolver.find("tool", path=(f"{tmp_path}/sbin",), cwd="/")
    assert found is not None
    assert found.path == f"{tmp_path}/bin/tool"
    assert found.real_path == str(real)


def test_a_loop_of_links_is_not_found(resolver: Resolver, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert resolver.find("a", path=(str(tmp_path),), cwd="/") is None
    assert resolver.real_directory(str(tmp_path / "a")) is None


def test_a_file_that_others_could_change_is_hashed_and_not_trusted(
    resolver: Resolver, tmp_path: Path
) -> None:
    tool = program(tmp_path / "tool", mode=0o777)
    found = resolver.find(str(tool), path=(), cwd="/")
    assert found is not None
    assert not found.trusted
    assert found.identity.sha256 == hashlib.sha256(tool.read_bytes()).hexdigest()
    status = tool.stat()
    assert (found.identity.device, found.identity.inode) == (status.st_dev, status.st_ino)


def test_a_system_program_is_trusted_and_not_hashed(resolver: Resolver) -> None:
    found = resolver.find("sh", path=("/usr/bin", "/bin"), cwd="/")
    assert found is not None
    assert found.trusted
    assert found.identity.sha256 is None


def test_a_link_out_of_a_safe_directory_into_an_unsafe_one_is_not_trusted(
    resolver: Resolver, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "sh").symlink_to("/bin/sh")
    found = resolver.find("sh", path=(str(tmp_path),), cwd="/")
    assert found is not None
    assert found.real_path == os.path.realpath("/bin/sh")
    assert not found.trusted


def test_another_content_is_another_identity(resolver: Resolver, tmp_path: Path) -> None:
    tool = program(tmp_path / "tool", "#!/bin/sh\necho a\n", 0o777)
    before = resolver.find(str(tool), path=(), cwd="/")
    program(tool, "#!/bin/sh\necho b\n", 0o777)
    after = resolver.find(str(tool), path=(), cwd="/")
    assert before is not None
    assert after is not None
    assert before.identity.sha256 != after.identity.sha256


def test_a_changeable_file_too_large_to_hash_is_not_found(tmp_path: Path) -> None:
    tool = program(tmp_path / "tool", "x" * 100, 0o777)
    assert FilesystemResolver(hash_limit=99).find(str(tool), path=(), cwd="/") is None
    assert FilesystemResolver(hash_limit=100).find(str(tool), path=(), cwd="/") is not None


def test_directories_are_given_by_their_real_path(resolver: Resolver, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    program(tmp_path / "file")
    assert resolver.real_directory(f"{tmp_path}/link") == f"{tmp_path}/real"
    assert resolver.real_directory(f"{tmp_path}/file") is None
    assert resolver.real_directory(f"{tmp_path}/nonesuch") is None
    assert resolver.real_directory("relative") is None
    assert resolver.real_directory("/a\0b") is None


def test_a_real_path_never_goes_through_a_link_that_leads_elsewhere_for_each_process(tmp_path):
    resolver = FilesystemResolver()
    (tmp_path / "here").symlink_to("/proc/self/cwd")
    (tmp_path / "twice").symlink_to(tmp_path / "here")
    (tmp_path / "plain").symlink_to("/etc/hostname")
    for path in ("here/secret", "twice/secret", "../" * 40 + "proc/self/root/etc/passwd"):
        assert resolver.real_path(f"{tmp_path}/{path}") is None
    assert resolver.real_path("/dev/fd/0") is None
    assert resolver.real_path(f"{tmp_path}/plain").path == "/etc/hostname"
    assert resolver.real_path("/proc/version").path == "/proc/version"


def test_other_paths_that_lead_to_a_program_are_named(resolver: Resolver, tmp_path: Path) -> None:
    tool = program(tmp_path / "tools-1.2" / "tool")
    (tmp_path / "tools").symlink_to("tools-1.2")
    found = resolver.find(f"{tmp_path}/tools/tool", path=(), cwd="/")
    assert found is not None
    assert (found.path, found.aliases) == (str(tool), (f"{tmp_path}/tools/tool",))
    roundabout = resolver.find(f"{tmp_path}/tools/../tools/tool", path=(), cwd="/")
    assert roundabout is not None
    assert roundabout.aliases == ()


def test_a_program_of_a_merged_system_has_both_paths(resolver: Resolver) -> None:
    merged = os.path.islink("/bin")  # noqa: PTH114 - the resolver looks in the same way
    found = resolver.find("ls", path=("/usr/bin",), cwd="/")
    assert found is not None
    assert found.aliases == (("/bin/ls",) if merged else ())


def test_a_file_too_large_to_be_read_is_told_from_one_that_nobody_can_change(tmp_path: Path) -> None:
    script = program(tmp_path / "x.sh", "more than eight bytes")
    identity = FilesystemResolver(hash_limit=8).file(str(script))
    assert identity is not None
    assert identity.sha256 == "unhashed"
    trusted = FilesystemResolver(hash_limit=8).file("/usr/bin/ldd")
    assert trusted is None or trusted.sha256 is None


def test_for_one_command_everything_is_found_as_it_is_otherwise(tmp_path: Path) -> None:
    program(tmp_path / "tool")
    (tmp_path / "link").symlink_to("/usr/bin/env")
    path = (str(tmp_path), "/usr/local/bin", "/usr/bin", "/bin", "/usr/../bin")
    once, anew = FilesystemResolver().for_one_command(), FilesystemResolver()
    names = [
        *[each.name for each in sorted(Path("/usr/bin").iterdir())[:150]],
        "tool",
        "link",
        "nonesuch",
        "/bin/sh",
        "/usr/bin/../bin/sh",
        ".",
    ]
    for name in names * 2:
        assert once.find(name, path=path, cwd="/") == anew.find(name, path=path, cwd="/"), name


def test_for_one_command_a_directory_that_others_change_is_looked_at_anew(tmp_path: Path) -> None:
    resolver = FilesystemResolver().for_one_command()
    program(tmp_path / "bin" / "tool")
    program(tmp_path / "other" / "tool")
    first = resolver.find("tool", path=(f"{tmp_path}/bin",), cwd="/")
    (tmp_path / "bin").rename(tmp_path / "away")
    (tmp_path / "bin").symlink_to("other")
    second = resolver.find("tool", path=(f"{tmp_path}/bin",), cwd="/")
    assert first is not None
    assert first.real_path == f"{tmp_path}/bin/tool"
    assert second is not None
    assert second.real_path == f"{tmp_path}/other/tool"
