"""Servers of a test's own that replicate one another with GTIDs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from helpers.servers import LocalServer
from helpers.waiting import wait_until

__all__ = [
    "REPLICATION_OPTIONS",
    "promote",
    "replicate",
    "replicating_servers",
    "start_applying",
    "stop_applying",
    "wait_for_replica",
]

REPLICATION_OPTIONS = [
    "--gtid-mode=ON",
    "--enforce-gtid-consistency",
    "--log-slave-updates",
    # A killed server must not lose a transaction that its replica has.
    "--innodb-flush-log-at-trx-commit=1",
    "--sync-binlog=1",
]


@contextmanager
def replicating_servers(kind: type[LocalServer], count: int = 2) -> Iterator[list[LocalServer]]:
    """Start servers of one kind; all but the first are replicas of it."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(kind(options=[*REPLICATION_OPTIONS, f"--server-id={number + 1}"]))
            for number in range(count)
        ]
        for replica in servers[1:]:
            replicate(replica, servers[0])
        yield servers


def replicate(replica: LocalServer, source: LocalServer) -> None:
    """Let a server apply what another one commits."""
    if _is_new(replica):
        statement = (
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{source.host}', SOURCE_PORT={source.port},"
            f" SOURCE_USER='{source.user}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1"
        )
        replica.execute(statement, "START REPLICA")
    else:
        statement = (
            f"CHANGE MASTER TO MASTER_HOST='{source.host}', MASTER_PORT={source.port},"
            f" MASTER_USER='{source.user}', MASTER_AUTO_POSITION=1"
        )
        replica.execute(statement, "START SLAVE")


def wait_for_replica(replica: LocalServer, source: LocalServer) -> None:
    """Until it has applied everything that the source has committed."""
    executed = source.execute("SELECT @@GLOBAL.gtid_executed")[0][0]
    has = f"SELECT GTID_SUBSET('{executed}', @@GLOBAL.gtid_executed)"
    wait_until(lambda: replica.execute(has)[0][0] == 1, "the replica has caught up")


def promote(replica: LocalServer) -> None:
    """Let a replica no longer be one."""
    word = "REPLICA" if _is_new(replica) else "SLAVE"
    replica.execute(f"STOP {word}", f"RESET {word} ALL")


def stop_applying(replica: LocalServer) -> None:
    """Let a replica lag."""
    replica.execute("STOP REPLICA" if _is_new(replica) else "STOP SLAVE")


def start_applying(replica: LocalServer) -> None:
    """Let it catch up."""
    replica.execute("START REPLICA" if _is_new(replica) else "START SLAVE")


def _is_new(server: LocalServer) -> bool:
    return int(server.version().split(".")[0]) >= 8
