"""Replication between servers that a test starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from helpers.servers import LocalServer
from helpers.waiting import wait_until

__all__ = [
    "REPLICATION_OPTIONS",
    "executed_on",
    "promote",
    "replicate",
    "replicating_servers",
    "start_applying",
    "stop_applying",
    "wait_for_replica",
]

_OPTIONS = [
    "--log-slave-updates",
    # A killed server must not lose a transaction that its replica has.
    "--innodb-flush-log-at-trx-commit=1",
    "--sync-binlog=1",
]
REPLICATION_OPTIONS = ["--gtid-mode=ON", "--enforce-gtid-consistency", *_OPTIONS]


@contextmanager
def replicating_servers(kind: type[LocalServer], count: int = 2) -> Iterator[list[LocalServer]]:
    """Yield started servers of one kind; all but the first are replicas of the first."""
    options = _OPTIONS if kind.is_mariadb else REPLICATION_OPTIONS
    with ExitStack() as stack:
        servers = [
            stack.enter_context(kind(options=[*options, f"--server-id={number + 1}"]))
            for number in range(count)
        ]
        for replica in servers[1:]:
            replicate(replica, servers[0])
        yield servers


def replicate(replica: LocalServer, source: LocalServer, *, with_gtids: bool = True) -> None:
    """Make a server the replica of another one; without GTIDs, from the current position on."""
    file, pos = ("", 0) if with_gtids else source.position()
    begin = "{0}_AUTO_POSITION=1" if with_gtids else f"{{0}}_LOG_FILE='{file}', {{0}}_LOG_POS={pos}"
    where = f"{{0}}_HOST='{source.host}', {{0}}_PORT={source.port}, {{0}}_USER='{source.user}'"
    if replica.is_mariadb and with_gtids:
        # From 11.4 on, a replica verifies the source's certificate by default.
        begin = "{0}_SSL=0, {0}_USE_GTID=slave_pos"
    if _is_new(replica):
        change = "CHANGE REPLICATION {0} TO GET_{0}_PUBLIC_KEY=1, "
        replica.execute(f"{change}{where}, {begin}".format("SOURCE"), "START REPLICA")
    else:
        replica.execute(f"CHANGE {{0}} TO {where}, {begin}".format("MASTER"), "START SLAVE")


def wait_for_replica(replica: LocalServer, source: LocalServer) -> None:
    """Wait until the replica has applied everything that the source has committed."""
    if source.is_mariadb:
        last = source.execute("SELECT @@GLOBAL.gtid_binlog_pos")[0][0]
        has = f"SELECT MASTER_GTID_WAIT('{last}', 0)"
        wait_until(lambda: replica.execute(has)[0][0] == 0, "the replica has caught up")
        return
    executed = source.execute("SELECT @@GLOBAL.gtid_executed")[0][0]
    has = f"SELECT GTID_SUBSET('{executed}', @@GLOBAL.gtid_executed)"
    wait_until(lambda: replica.execute(has)[0][0] == 1, "the replica has caught up")


def executed_on(server: LocalServer) -> str:
    """Return the GTIDs that a server has executed, in order and without line breaks."""
    name = "gtid_binlog_state" if server.is_mariadb else "gtid_executed"
    shown = str(server.execute(f"SELECT @@GLOBAL.{name}")[0][0]).replace("\n", "")
    return ",".join(sorted(shown.split(","))) if server.is_mariadb else shown


def promote(replica: LocalServer) -> None:
    """Make a replica an independent server."""
    word = "REPLICA" if _is_new(replica) else "SLAVE"
    replica.execute(f"STOP {word}", f"RESET {word} ALL")


def stop_applying(replica: LocalServer) -> None:
    """Stop the replica's replication, so that it lags."""
    replica.execute("STOP REPLICA" if _is_new(replica) else "STOP SLAVE")


def start_applying(replica: LocalServer) -> None:
    """Start the replica's replication again, so that it catches up."""
    replica.execute("START REPLICA" if _is_new(replica) else "START SLAVE")


def _is_new(server: LocalServer) -> bool:
    return not server.is_mariadb and int(server.version().split(".")[0]) >= 8
