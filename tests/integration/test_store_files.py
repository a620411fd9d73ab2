"""Opening what is not there, not ours, or no longer whole.

Run as a script, this file opens a store as another user.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import uuid
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from adapters.stores.codec import entry_text, request_row
from adapters.stores.sqlite import open_store
from core.audit import verify
from core.errors import StartError, StoreError
from core.model.allowlist import AllowlistEntry
from core.model.request import AuditEvent, State

ROOT = Path(__file__).parents[2]
NOBODY = 65534
SCHEMA = sum(file.name.endswith(".sql") for file in files("adapters.stores").joinpath("schema").iterdir())


@pytest.fixture
async def database(tmp_path):
    """A database with 60 events, closed."""
    path = tmp_path / "sayso.db"
    async with open_store(path) as store:
        for number in range(60):
            await store.append(
                AuditEvent(number, "request.created", "main", f"r{number}", {"line": "ls " * 20})
            )
    return path


def contents(folder):
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


async def refusal(path):
    """Return the words with which the store refuses to open, and check that it changed nothing."""
    before = contents(path.parent)
    with pytest.raises(StartError) as caught:
        async with open_store(path):
            pass
    assert contents(path.parent) == before
    assert str(path) in str(caught.value)
    return str(caught.value)


async def test_the_files_are_private_and_a_closed_store_is_one_file(tmp_path):
    old = os.umask(0)
    try:
        async with open_store(tmp_path / "sayso.db") as store:
            await store.append(AuditEvent(1, "a.b", "main"))
            modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()}
    finally:
        os.umask(old)
    assert modes == {"sayso.db": 0o600, "sayso.db-wal": 0o600, "sayso.db-shm": 0o600}
    assert [entry.name for entry in tmp_path.iterdir()] == ["sayso.db"]


async def test_a_database_that_others_can_read_is_made_private(database):
    database.chmod(0o644)
    async with open_store(database):
        pass
    assert stat.S_IMODE(database.stat().st_mode) == 0o600


async def test_writing_is_synced_and_foreign_keys_are_on(tmp_path):
    async with open_store(tmp_path / "sayso.db") as store:
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "trusted_schema")
        found = await store._database.write(
            lambda connection: [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
        )
    assert found == ["wal", 2, 1, 5000, 0]


async def test_the_schema_version_is_noted(database):
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
    connection.close()


async def test_an_empty_file_becomes_a_database(tmp_path):
    path = tmp_path / "sayso.db"
    path.touch()
    async with open_store(path) as store:
        assert (await store.head())[0] == 0


@pytest.mark.parametrize("name", ["with space.db", "per%20cent?.db", "quote'#.db"])
async def test_any_file_name_can_be_opened_twice(tmp_path, name):
    for _ in range(2):
        async with open_store(tmp_path / name) as store:
            await store.append(AuditEvent(1, "a.b", "main"))
    async with open_store(tmp_path / name) as store:
        assert (await verify(store)).events == 2
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


async def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "sayso.db"
    path.write_text("notes of mine\n" * 500)
    words = await refusal(path)
    for part in (
        "not an SQLite database",
        "Nothing was changed",
        "Restore a copy",
        "sayso.db-wal",
        "are lost",
    ):
        assert part in words


@pytest.mark.parametrize("keep", [17, 100, 4096, 20_000])
async def test_a_database_cut_short_is_refused(database, keep):
    database.write_bytes(database.read_bytes()[:keep])
    words = await refusal(database)
    assert "damaged" in words
    assert "Nothing was changed" in words


async def test_a_database_overwritten_in_the_middle_is_refused(database):
    content = bytearray(database.read_bytes())
    pages = len(content) // 4096
    for page in range(1, pages):
        content[page * 4096 : page * 4096 + 64] = os.urandom(64)
    database.write_bytes(content)
    assert "damaged" in await refusal(database)


async def test_a_damaged_database_with_a_journal_is_refused_and_neither_is_touched(tmp_path):
    path, copy = tmp_path / "sayso.db", tmp_path / "copy" / "sayso.db"
    copy.parent.mkdir()
    async with open_store(path) as store:
        await store.append(*(AuditEvent(n, "a.b", "main", None, {"x": "y" * 500}) for n in range(300)))
    async with open_store(path) as store:
        await store.append(AuditEvent(300, "a.b", "main"))
        for entry in ("sayso.db", "sayso.db-wal"):
            shutil.copyfile(tmp_path / entry, copy.parent / entry)
    assert (copy.parent / "sayso.db-wal").stat().st_size > 0
    content = copy.read_bytes()
    copy.write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    assert "damaged" in await refusal(copy)


async def test_a_journal_left_by_a_kill_is_taken_up(tmp_path):
    path, copy = tmp_path / "sayso.db", tmp_path / "copy" / "sayso.db"
    copy.parent.mkdir()
    async with open_store(path) as store:
        await store.append(*(AuditEvent(n, "a.b", "main") for n in range(30)))
        for entry in ("sayso.db", "sayso.db-wal"):
            shutil.copyfile(tmp_path / entry, copy.parent / entry)
    async with open_store(copy) as store:
        assert (await verify(store)).events == 30


async def test_a_journal_whose_database_is_gone_is_not_deleted(tmp_path):
    (tmp_path / "sayso.db-wal").write_bytes(b"x" * 5000)
    words = await refusal(tmp_path / "sayso.db")
    assert "missing or empty" in words
    assert "sayso.db-wal" in words


async def test_a_database_of_a_newer_version_is_refused(database):
    connection = sqlite3.connect(database)
    connection.execute(f"PRAGMA user_version = {SCHEMA + 5}")
    connection.close()
    words = await refusal(database)
    assert f"newer Sayso (schema {SCHEMA + 5}; this one knows {SCHEMA})" in words
    assert "Install that version again" in words


async def test_a_database_of_another_program_is_refused(tmp_path):
    path = tmp_path / "sayso.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    assert "not one of Sayso's" in await refusal(path)


async def test_a_directory_is_refused(tmp_path):
    assert "it is a directory" in await refusal(tmp_path)


async def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(StartError, match="No such file or directory"):
        async with open_store(tmp_path / "no" / "sayso.db"):
            pass


async def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "sayso.db")
    with pytest.raises(StartError, match="not a regular file"):
        async with open_store(tmp_path / "sayso.db"):
            pass


@pytest.fixture
def reachable_folder():
    """A folder that every user can reach."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("folder_mode", [0o755, 0o700])
def test_a_database_of_another_user_is_refused(reachable_folder, folder_mode):
    folder = reachable_folder / "home"
    folder.mkdir()
    folder.chmod(folder_mode)
    path = folder / "sayso.db"
    command = [sys.executable, __file__, str(path)]
    done = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    words = f"StartError: {path}: the database cannot be opened: Permission denied; check who owns it"
    assert (done.stdout, done.returncode) == ("", 1)
    assert words in done.stderr


async def test_a_migration_that_fails_leaves_the_version_before_it(database):
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 0")
    connection.close()
    with pytest.raises(StartError, match="already exists"):
        async with open_store(database):
            pass
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA user_version").fetchone() == (0,)
    assert connection.execute("SELECT count(*) FROM audit").fetchone() == (60,)
    connection.close()


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", '{"id": 7}'])
async def test_a_kept_request_that_cannot_be_read_is_an_error_and_not_a_guess(database, body):
    connection = sqlite3.connect(database)
    row = ("r1", "run", "waiting", "main", "agent:main:main", "b", 1, 2, 0, body)
    connection.execute(
        "INSERT INTO requests (id, kind, state, agent, session, binding, created_at, deadline,"
        " person_allowed, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )
    connection.commit()
    connection.close()
    async with open_store(database) as store:
        with pytest.raises(StoreError, match="cannot be read, the database is damaged"):
            await store.request("r1")
        with pytest.raises(StoreError, match="cannot be read, the database is damaged"):
            await store.in_states(State.WAITING)


async def open_as_nobody(path):
    async with open_store(path):
        pass  # imports everything while it can be read, and makes the database root's
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    async with open_store(path):
        sys.stdout.write("opened\n")


if __name__ == "__main__":
    asyncio.run(open_as_nobody(Path(sys.argv[1])))


async def test_a_database_of_the_first_schema_keeps_its_requests_copies_and_messages(tmp_path, make_request):
    path = tmp_path / "sayso.db"
    first = files("adapters.stores").joinpath("schema", "0001_first.sql").read_text()
    row = request_row(make_request())
    del row["command"], row["moment"]  # a later schema's
    connection = sqlite3.connect(path)
    connection.executescript(f"{first}\nPRAGMA user_version = 1;")
    slots = ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO requests ({', '.join(row)}) VALUES ({slots})", row)  # noqa: S608 - our names
    connection.execute("INSERT INTO copies (request_id, channel, ref) VALUES (?, 'web', 'ref')", (row["id"],))
    connection.execute(
        "INSERT INTO outbox (channel, kind, request_id, due_at, attempts) VALUES ('web', 'update', ?, 1, 2)",
        (row["id"],),
    )
    entry = AllowlistEntry("/usr/bin/ls", real_path="/usr/bin/ls", agent="main")
    connection.execute(
        "INSERT INTO allowlist (entry, pattern, agent, request_id, last_used_at, last_command)"
        " VALUES (?, x'2f', 'main', ?, 7, 'ls')",
        (entry_text(entry), row["id"]),
    )
    connection.commit()
    connection.close()
    async with open_store(path) as store:
        (learned,) = (await store.exec_approvals()).entries
        assert (learned.entry, learned.request_id, learned.last_used_at) == (entry, row["id"], 7)
        assert uuid.UUID(learned.id).version == 4
        assert (await store.request(row["id"])).canonical == make_request().canonical
        assert [(kept.copy.channel, kept.ref) for kept in await store.copies(row["id"])] == [("web", "ref")]
        assert [message.attempts for message in await store.due("web", 9, 9)] == [2]
