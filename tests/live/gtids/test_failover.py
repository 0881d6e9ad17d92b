"""A stream whose server is lost continues on another one that replicates it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from helpers.logs.cutting_proxy import cutting_proxy
from helpers.logs.log_names import INDEX, restart_with_log_name
from helpers.needed_servers import need
from helpers.servers import (
    LocalServer,
    MySQL9Server,
    MySQL56Server,
)
from helpers.servers.available import LOCAL_KINDS
from helpers.streams.source_runner import Offset, Spark, ids, insert
from helpers.writers.purges import purge
from helpers.writers.replication import (
    REPLICATION_OPTIONS,
    executed_on,
    promote,
    replicate,
    replicating_servers,
    start_applying,
    stop_applying,
    wait_for_replica,
)
from live.conftest import NewStream
from pyspark_mysqlbinlog.connector.tail.tail import Tail
from pyspark_mysqlbinlog.errors import (
    ConnectionFailedError,
    FailoverError,
    InvalidPositionError,
    MySQLBinlogError,
)

pytestmark = pytest.mark.one_server

TABLE = "failover.t"


@pytest.fixture(params=LOCAL_KINDS)
def pair(request: pytest.FixtureRequest) -> Iterator[list[LocalServer]]:
    """Yield a primary with a table, and its replica."""
    need(LOCAL_KINDS[request.param])
    with replicating_servers(LOCAL_KINDS[request.param]) as servers:
        servers[0].execute(
            "CREATE DATABASE failover", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, v INT)"
        )
        insert(servers[0], TABLE, 1, 2)
        wait_for_replica(servers[1], servers[0])
        yield servers


def lost_on(server: LocalServer) -> str:
    """Return the error pattern for purged changes that come next; MariaDB reports its own error."""
    if server.is_mariadb:
        return "required binlog files have been purged"
    return r"it has purged .*, which comes next"


def stream(new_stream: NewStream, pair: list[LocalServer], **options: str) -> Spark:
    """Return a stream with the addresses of both servers."""
    hosts = ",".join(f"{server.host}:{server.port}" for server in pair)
    given = {"retryTimeout": "120s", "connectTimeout": "60s", "host": hosts} | options
    return new_stream(pair[0], TABLE, **given)


def uuid_of(server: LocalServer) -> str:
    if server.is_mariadb:
        return f"server_id-{server.execute('SELECT @@server_id')[0][0]}"
    return str(server.execute("SELECT @@server_uuid")[0][0])


def read_until(spark: Spark, start: Offset, last: int) -> tuple[list[int], Offset]:
    """Return the ids of all rows up to `last`, and the offset after them."""
    got: list[int] = []
    while last not in got:
        end = spark.next_batch(start)
        got += ids(spark.rows(start, end))
        start = end
    return got, start


def test_running_stream_continues_on_replica_of_killed_primary(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    spark = stream(new_stream, pair)
    start = spark.initial()
    insert(primary, TABLE, 3, 4)
    got, start = read_until(spark, start, 4)
    assert (got, start["epoch"]) == ([3, 4], 0)
    insert(primary, TABLE, 5)
    wait_for_replica(replica, primary)
    primary.kill()
    promote(replica)
    insert(replica, TABLE, 6, 7)
    got, start = read_until(spark, start, 7)
    assert (got, start["epoch"]) == ([5, 6, 7], 2)
    report = spark.reader.reportLatestOffset()
    assert report is not None
    assert report["failovers"] == 1
    assert start["server_uuid"] == uuid_of(replica)
    assert start["gtid"] == executed_on(replica)


def test_stream_fails_over_when_the_tail_ends_while_a_batch_is_planned(
    pair: list[LocalServer], new_stream: NewStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, replica = pair
    spark = stream(new_stream, pair)
    start = spark.initial()
    # A tail that looks well when planning begins, and has ended when its changes are requested.
    monkeypatch.setattr(Tail, "is_superseded", lambda _: False)
    insert(primary, TABLE, 3)
    got, start = read_until(spark, start, 3)
    wait_for_replica(replica, primary)
    primary.kill()
    promote(replica)
    insert(replica, TABLE, 4)
    more, start = read_until(spark, start, 4)
    assert (got + more, start["server_uuid"]) == ([3, 4], uuid_of(replica))


def test_restarted_stream_continues_on_replica_of_killed_primary(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    spark = stream(new_stream, pair)
    start = spark.initial()
    insert(primary, TABLE, 3, 4)
    _, start = read_until(spark, start, 4)
    spark.reader.stop()
    insert(primary, TABLE, 5)
    wait_for_replica(replica, primary)
    primary.kill()
    promote(replica)
    insert(replica, TABLE, 6)
    got, start = read_until(stream(new_stream, pair), start, 6)
    assert (got, start["epoch"]) == ([5, 6], 2)


def test_planned_batch_is_read_from_replica_of_killed_primary(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    spark = stream(new_stream, pair)
    start = spark.initial()
    insert(primary, TABLE, 3)
    _, start = read_until(spark, start, 3)
    insert(primary, TABLE, 4, 5)
    spark.wait_for_tail(primary)
    end = spark.next_batch(start)
    assert ids(spark.rows(start, end)) == [4, 5]
    spark.reader.stop()
    insert(primary, TABLE, 6)
    wait_for_replica(replica, primary)
    primary.kill()
    promote(replica)
    again = stream(new_stream, pair)
    rows = again.rows(start, end)
    assert ids(rows) == [4, 5]
    assert {row["seq"]["epoch"] for row in rows} == {1}
    got, end = read_until(again, end, 6)
    assert (got, end["epoch"]) == ([6], 2)


def test_lagging_replica_is_not_used_for_failover(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    spark = stream(new_stream, pair, retryTimeout="3s")
    start = spark.initial()
    stop_applying(replica)
    insert(primary, TABLE, 3)
    _, start = read_until(spark, start, 3)
    lacks = start["gtid"].rpartition("-")[2]
    reason = f"it has not executed {uuid_of(primary)}:{lacks};"
    if primary.is_mariadb:
        reason = f"it has not logged 0-1-{lacks}"
    primary.kill()
    with pytest.raises(ConnectionFailedError, match=reason):
        read_until(spark, start, 4)
    # The replica is used once it has executed all delivered changes.
    primary.start()
    start_applying(replica)
    wait_for_replica(replica, primary)
    primary.kill()
    promote(replica)
    insert(replica, TABLE, 4)
    got, start = read_until(stream(new_stream, pair), start, 4)
    assert (got, start["epoch"]) == ([4], 2)


def test_replica_that_purged_undelivered_changes_is_not_used_for_failover(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    start = stream(new_stream, pair).initial()
    insert(primary, TABLE, 3)
    wait_for_replica(replica, primary)
    purge(replica)
    primary.kill()
    with pytest.raises(ConnectionFailedError, match=lost_on(replica)):
        read_until(stream(new_stream, pair, retryTimeout="3s"), start, 3)


def test_stream_continues_on_restarted_primary_if_replica_lags(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    spark = stream(new_stream, pair)
    start = spark.initial()
    stop_applying(replica)
    insert(primary, TABLE, 3)
    got, start = read_until(spark, start, 3)
    primary.kill()
    primary.start()
    insert(primary, TABLE, 4)
    got, start = read_until(spark, start, 4)
    assert (got, start["epoch"]) == ([4], 0)


def test_failover_during_unfinished_snapshot_raises_failover_error(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    spark = stream(new_stream, pair, startingOffset="snapshot", retryTimeout="3s")
    start = spark.initial()
    end = spark.next_batch(start)
    stop_applying(replica)
    insert(primary, TABLE, 0)
    # The snapshot rows include a row whose change the stream has not reached yet.
    assert sorted(ids(spark.rows(start, end))) == [0, 1, 2]
    primary.kill()
    refused = r"a snapshot is not done; rows of failover\.t were read there; bring it back"
    with pytest.raises(FailoverError, match=refused):
        read_until(spark, end, 4)
    primary.start()
    insert(primary, TABLE, 4)
    assert read_until(stream(new_stream, pair), end, 4)[0] == [0, 4]


def test_unread_snapshot_starts_on_the_replica_after_failover(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    spark = stream(new_stream, pair, startingOffset="snapshot")
    start = spark.initial()
    wait_for_replica(replica, primary)
    primary.kill()
    promote(replica)
    got, start = read_until(spark, start, 2)
    assert (sorted(got), start["epoch"]) == ([1, 2], 2)


def test_failover_after_completed_snapshot_continues_on_the_replica(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    """An empty batch records that the snapshot rows include no undelivered change."""
    primary, replica = pair
    spark = stream(new_stream, pair, startingOffset="snapshot")
    start = spark.initial()
    got, start = read_until(spark, start, 2)
    spark.wait_for_tail(primary)
    end = spark.latest(start)
    assert (end != start, spark.rows(start, end), spark.latest(end)) == (True, [], end)
    wait_for_replica(replica, primary)
    primary.kill()
    promote(replica)
    insert(replica, TABLE, 3)
    got, start = read_until(spark, end, 3)
    assert (got, start["epoch"]) == ([3], 2)


def test_failover_option_accepts_another_server_at_the_same_address(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    with cutting_proxy(primary.host, primary.port, iter(())) as name:
        options = {"host": "127.0.0.1", "port": str(name.port), "failover": "true"}
        spark = stream(new_stream, pair, **options)
        start = spark.initial()
        insert(primary, TABLE, 3)
        got, start = read_until(spark, start, 3)
        insert(primary, TABLE, 4)
        wait_for_replica(replica, primary)
        primary.kill()
        promote(replica)
        name.target = (replica.host, replica.port)
        insert(replica, TABLE, 5)
        got, start = read_until(spark, start, 5)
        assert (got, start["epoch"]) == ([4, 5], 2)
        spark.reader.stop()
        insert(replica, TABLE, 6)
        got, start = read_until(stream(new_stream, pair, **options), start, 6)
        assert (got, start["server_uuid"]) == ([6], uuid_of(replica))


def test_prefer_replica_reads_from_a_running_replica(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    wanted = {"preferReplica": "true"}
    assert stream(new_stream, pair).initial()["server_uuid"] == uuid_of(primary)
    spark = stream(new_stream, pair, **wanted)
    start = spark.initial()
    assert start["server_uuid"] == uuid_of(replica)
    insert(primary, TABLE, 3)
    assert read_until(spark, start, 3)[0] == [3]
    stop_applying(replica)
    assert stream(new_stream, pair, **wanted).initial()["server_uuid"] == uuid_of(primary)


def test_failover_with_checkpoint_without_gtids_is_rejected(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    start = stream(new_stream, pair).initial() | {"gtid": None}
    wait_for_replica(replica, primary)
    primary.kill()
    with pytest.raises(ConnectionFailedError, match="the checkpoint has no executed GTIDs"):
        read_until(stream(new_stream, pair, retryTimeout="3s"), start, 2)


def test_replica_with_transactions_of_its_own_is_not_used_for_failover(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    spark = stream(new_stream, pair, retryTimeout="3s")
    start = spark.initial()
    replica.execute("CREATE TABLE failover.own (id INT)")
    insert(primary, TABLE, 3)
    _, start = read_until(spark, start, 3)
    wait_for_replica(replica, primary)
    last = start["gtid"].rpartition("-")[2]
    uuid = uuid_of(primary)
    primary.kill()
    reason = f"it has logged {uuid}:{last} after transactions that come next"
    if replica.is_mariadb:
        reason = "or on MariaDB some whose numbers do not increase"
    with pytest.raises(ConnectionFailedError, match=reason):
        read_until(spark, start, 4)


def test_planned_batch_with_ddl_is_read_only_from_its_own_server(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    primary, replica = pair
    spark = stream(new_stream, pair)
    start = spark.initial()
    insert(primary, TABLE, 3)
    _, start = read_until(spark, start, 3)
    primary.execute(f"ALTER TABLE {TABLE} ADD w INT")
    primary.execute(f"INSERT INTO {TABLE} VALUES (4, 4, 4)")
    spark.wait_for_tail(primary)
    end = spark.next_batch(start)
    spark.reader.stop()
    wait_for_replica(replica, primary)
    primary.kill()
    with pytest.raises(FailoverError, match="tables change in the batch"):
        stream(new_stream, pair, retryTimeout="3s").rows(start, end)
    primary.start()
    assert ids(stream(new_stream, pair).rows(start, end)) == [4]


def test_planned_batch_across_base_names_of_the_replica_is_rejected(
    mysql56: object, new_stream: NewStream
) -> None:
    """On the replica the batch's first file number exceeds its last; it must not seem empty."""
    with ExitStack() as stack:
        pair: list[LocalServer] = [
            stack.enter_context(
                MySQL56Server(options=[*REPLICATION_OPTIONS, INDEX, f"--server-id={number}"])
            )
            for number in (1, 2)
        ]
        primary, replica = pair
        replicate(replica, primary)
        primary.execute("CREATE DATABASE failover", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY)")
        for _ in range(4):
            replica.rotate()
        spark = stream(new_stream, pair)
        start = spark.initial()
        insert(primary, TABLE, 3)
        _, start = read_until(spark, start, 3)
        insert(primary, TABLE, 4)
        wait_for_replica(replica, primary)
        restart_with_log_name(replica, "other-bin")
        start_applying(replica)
        insert(primary, TABLE, 5)
        wait_for_replica(replica, primary)
        spark.wait_for_tail(primary)
        end = spark.next_batch(start)
        spark.reader.stop()
        primary.kill()
        with pytest.raises(FailoverError, match="the binlog got another base name"):
            stream(new_stream, pair).rows(start, end)
        primary.start()
        assert ids(stream(new_stream, pair).rows(start, end)) == [4, 5]


def test_failover_with_prepared_xa_rows_raises_failover_error(
    mysql9: object, new_stream: NewStream
) -> None:
    """The rows are known by positions on the lost server. (5.6 logs XA rows only at commit.)"""
    with replicating_servers(MySQL9Server) as pair:
        primary, replica = pair
        primary.execute("CREATE DATABASE failover", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY)")
        spark = stream(new_stream, pair, retryTimeout="3s")
        start = spark.initial()
        primary.execute(
            "XA START 'x'", f"INSERT INTO {TABLE} VALUES (1)", "XA END 'x'", "XA PREPARE 'x'"
        )
        insert(primary, TABLE, 2)
        _, start = read_until(spark, start, 2)
        wait_for_replica(replica, primary)
        primary.kill()
        with pytest.raises(FailoverError, match="rows of XA transactions are prepared"):
            read_until(spark, start, 1)
        primary.start()
        primary.execute("XA COMMIT 'x'")
        assert read_until(stream(new_stream, pair), start, 1)[0] == [1]


def test_replica_without_log_slave_updates_is_not_used_for_failover(
    mysql9: object, new_stream: NewStream
) -> None:
    """MySQL 5.6 requires log_slave_updates with GTIDs, so this server is 9.x."""
    with (
        replicating_servers(MySQL9Server, 1) as (primary,),
        MySQL9Server(
            options=[*REPLICATION_OPTIONS, "--server-id=2", "--skip-log-slave-updates"]
        ) as replica,
    ):
        primary.execute("CREATE DATABASE failover", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY)")
        replicate(replica, primary)
        pair: list[LocalServer] = [primary, replica]
        start = stream(new_stream, pair).initial()
        insert(primary, TABLE, 1)
        wait_for_replica(replica, primary)
        primary.kill()
        with pytest.raises(ConnectionFailedError, match="log_slave_updates is OFF"):
            read_until(stream(new_stream, pair, retryTimeout="3s"), start, 1)
        promote(replica)
        with pytest.raises(ConnectionFailedError, match=r"it has purged .*, which comes next"):
            read_until(stream(new_stream, pair, retryTimeout="3s"), start, 1)


def test_rows_after_a_replay_on_another_server_have_larger_seq(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    """The lost server returns after its batch was read from the replica."""
    primary, replica = pair
    spark = stream(new_stream, pair)
    start = spark.initial()
    insert(primary, TABLE, 3)
    _, start = read_until(spark, start, 3)
    insert(primary, TABLE, 4)
    spark.wait_for_tail(primary)
    end = spark.next_batch(start)
    spark.reader.stop()
    wait_for_replica(replica, primary)
    primary.kill()
    again = stream(new_stream, pair)
    rows = again.rows(start, end)
    primary.start()
    primary.execute(f"UPDATE {TABLE} SET v = 2 WHERE id = 4")
    # Both in the same stream and in another one that does not know of the replay.
    for later in (again, stream(new_stream, pair)):
        at, found = end, list[dict[str, Any]]()
        while not found:
            before, at = at, later.next_batch(at)
            found = later.rows(before, at)
        assert [*found[0]["seq"].values()] > [*rows[-1]["seq"].values()]
        later.reader.stop()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--replicate-ignore-table=failover.t"], "it applies only a part of its source's changes"),
        (["--binlog-ignore-db=failover"], "leaves the changes of `failover` out of its binlog"),
        (["--lower-case-table-names=1"], "lower_case_table_names would change the names"),
    ],
)
def test_server_with_other_contents_is_not_used_for_failover(
    mysql56: object, new_stream: NewStream, options: list[str], reason: str
) -> None:
    with (
        replicating_servers(MySQL56Server, 1) as (primary,),
        MySQL56Server(options=[*REPLICATION_OPTIONS, "--server-id=2", *options]) as replica,
    ):
        table = "failover.Orders" if "names" in reason else TABLE
        primary.execute("CREATE DATABASE failover", f"CREATE TABLE {table} (id INT PRIMARY KEY)")
        replicate(replica, primary)
        hosts = ",".join(f"{server.host}:{server.port}" for server in (primary, replica))
        spark = new_stream(primary, table, host=hosts, retryTimeout="3s", connectTimeout="60s")
        start = spark.initial()
        insert(primary, table, 1)
        _, start = read_until(spark, start, 1)
        wait_for_replica(replica, primary)
        primary.kill()
        with pytest.raises(ConnectionFailedError, match=reason):
            read_until(spark, start, 2)


def test_gtid_purged_counts_as_executed_in_the_initial_offset(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    """A server restored from a backup has executed GTIDs that none of its files contain."""
    primary, _ = pair
    if primary.is_mariadb:
        pytest.skip("MariaDB has no set of purged GTIDs")
    executed = str(primary.execute("SELECT @@GLOBAL.gtid_executed")[0][0])
    with replicating_servers(type(primary), 1) as (copy,):
        copy.execute("CREATE DATABASE failover", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY)")
        copy.execute("RESET BINARY LOGS AND GTIDS" if copy.version() >= "8" else "RESET MASTER")
        copy.execute(f"SET GLOBAL gtid_purged = '{executed}'")
        assert new_stream(copy, TABLE).initial()["gtid"] == executed


def test_stream_starts_after_a_gtid_set(pair: list[LocalServer], new_stream: NewStream) -> None:
    primary, _ = pair
    spark = stream(new_stream, pair)
    before = spark.initial()["gtid"]
    insert(primary, TABLE, 3)
    between = new_stream(primary, TABLE).initial()
    primary.rotate()
    insert(primary, TABLE, 4)
    for executed, expected in ((before, [3, 4]), (between["gtid"], [4])):
        started = new_stream(primary, TABLE, startingOffset=f"gtid:{executed}")
        start = started.initial()
        assert start["gtid"] == executed
        assert read_until(started, start, 4)[0] == expected
    number = int(before.rpartition("-")[2])
    uuid = before.partition(":")[0]
    refused = {
        f"{uuid}:1-{number + 9}": f"it has not executed {uuid}:{number + 3}-{number + 9}",
        f"{uuid}:1:3-{number}": r"it has logged .* after transactions that come next",
    }
    if primary.is_mariadb:
        refused = {
            f"0-1-{number + 9}": f"it has not logged 0-1-{number + 9}",
            f"0-7-{number}": f"it has not logged 0-7-{number}",
            f"0-1-{number},5-1-1": "it has not logged 5-1-1",
        }
    for executed, reason in refused.items():
        with pytest.raises(InvalidPositionError, match=reason):
            new_stream(primary, TABLE, startingOffset=f"gtid:{executed}").initial()
    purge(primary)
    with pytest.raises(MySQLBinlogError, match=lost_on(primary)):
        new_stream(primary, TABLE, startingOffset=f"gtid:{before}").initial()
