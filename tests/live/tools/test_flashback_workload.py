"""``flashback`` of the last 10,000 changes of a live workload restores the tables exactly.

The workload has rollbacks, savepoints, several binlog files, keys that change, a table without a
key, and several writers at once. Tables of every type, with and without a key, have random values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random, randrange
from time import sleep

import pytest

from helpers.schemas.random_tables import RandomTable
from helpers.servers import Server
from helpers.tools.flashbacks import Flashbacks, every_server_fixture
from helpers.writers.workload import Workload

CHANGES = 10_000
# Without `counters`, whose engine has no transactions.
TABLES = ("customers", "orders", "order_lines", "audit")


@contextmanager
def between_commits(server: Server) -> Iterator[None]:
    """Let no transaction commit inside the context."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH TABLES WITH READ LOCK")
        yield


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", every_server_fixture())
def test_flashback_undoes_the_last_10_000_changes_of_a_workload_exactly(
    request: pytest.FixtureRequest, name: str
) -> None:
    server: Server = request.getfixturevalue(name)
    with Flashbacks.on(server, "flashback_workload") as flashbacks:
        tables = ",".join(f"{flashbacks.database}.{table}" for table in TABLES)
        with Workload(server, flashbacks.database, seed=randrange(1 << 30)) as workload:
            workload.allow(100_000)
            while workload.changes < 1000:
                sleep(0.05)
            with between_commits(server):
                flashbacks.begin()
                before = flashbacks.shown(*TABLES)
                begun = workload.changes
            # Some changes are made to other tables or rolled back; they are not undone.
            while workload.changes < begun + CHANGES * 3 // 2:
                sleep(0.05)
            workload.allow(0)
            workload.finish()
        assert flashbacks.shown(*TABLES) != before
        undone = flashbacks.run("--since", flashbacks.since, "--apply", "--yes", tables=tables)
        assert undone.exit_code == 0, undone.output
        count = int(undone.stdout.splitlines()[-1].split()[0].replace(",", ""))
        assert count >= CHANGES
        assert flashbacks.shown(*TABLES) == before


@pytest.mark.sample(2)
@pytest.mark.parametrize("has_key", [True, False], ids=["keyed", "keyless"])
@pytest.mark.parametrize("name", every_server_fixture())
def test_flashback_undoes_random_changes_of_every_type_exactly(
    request: pytest.FixtureRequest, name: str, has_key: bool
) -> None:
    server: Server = request.getfixturevalue(name)
    seed = randrange(1 << 30)
    random_ = Random(seed)
    with Flashbacks.on(server, "flashback_random") as flashbacks:
        create, *statements = RandomTable.make(random_, 24).statements(random_, 150)
        flashbacks.execute(create, *statements[:4])
        if not has_key:
            flashbacks.execute("ALTER TABLE t MODIFY id INT, DROP PRIMARY KEY")
        before = flashbacks.shown()
        flashbacks.begin()
        flashbacks.execute(*statements[4:])
        try:
            flashbacks.undo_and_check()
        except AssertionError as error:
            raise AssertionError(f"with seed {seed}") from error
        assert flashbacks.shown() == before, f"with seed {seed}"
