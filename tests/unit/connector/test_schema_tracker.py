"""DDL followed through a log: from which position on a table looks how."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.schema_tracker import SchemaTracker, last_change
from pyspark_mysqlbinlog.decoder.sql_tokens import SqlContext
from pyspark_mysqlbinlog.decoder.statements import classify
from pyspark_mysqlbinlog.errors import SchemaChangedError
from pyspark_mysqlbinlog.protocol.messages import Query

from events import LogBuilder

CONTEXT = SqlContext.of(0, "5.7.41-log")


def follow(
    *statements: str,
    history: SchemaHistory | None = None,
    strict: bool = True,
    case_sensitive: bool = True,
    charsets: dict[str, str] | None = None,
) -> tuple[SchemaTracker, list[int]]:
    """The tracker after the statements, and where each of them ends."""
    tracker = SchemaTracker(
        history or SchemaHistory(),
        lambda database, table: database == "d" and table != "unwanted",
        charsets or {},
        case_sensitive=case_sensitive,
        strict=strict,
    )
    log = LogBuilder()
    ends = []
    for sql in statements:
        log.query(sql)
        ends.append(log.pos)
    for event in log.events():
        query = Query.parse(event.body)
        statement = classify(query.sql, query.database, CONTEXT)
        tracker.follow(event, statement, CONTEXT, log.position(event.end))
    return tracker, ends


def columns(tracker: SchemaTracker, pos: int, table: str = "t") -> list[str] | None:
    schema = tracker.history.at(LogBuilder().position(pos), "d", table)
    return None if schema is None else [column.name for column in schema.columns]


def test_a_table_is_known_from_the_end_of_its_create_on() -> None:
    tracker, (end,) = follow("CREATE TABLE t (id INT)")
    assert columns(tracker, end - 1) is None
    assert columns(tracker, end) == ["id"]
    assert last_change(tracker.history, ("d", "t")) == LogBuilder().position(end)
    assert last_change(tracker.history, ("d", "other")) is None


def test_like_drop_and_create_again() -> None:
    tracker, ends = follow(
        "CREATE TABLE t (id INT)",
        "CREATE TABLE u LIKE t",
        "DROP TABLE t",
        "CREATE TABLE t (a INT, b INT)",
    )
    assert [columns(tracker, end) for end in ends] == [["id"], ["id"], None, ["a", "b"]]
    assert columns(tracker, ends[-1], "u") == ["id"]


def test_if_not_exists_replaces_nothing_that_is_there() -> None:
    tracker, ends = follow(
        "CREATE TABLE t (id INT)",
        "CREATE TABLE IF NOT EXISTS t (other INT)",
        "DROP TABLE t",
        "CREATE TABLE IF NOT EXISTS t (other INT)",
    )
    assert [columns(tracker, end) for end in ends] == [["id"], ["id"], None, ["other"]]


def test_unwanted_tables_are_not_followed() -> None:
    tracker, _ = follow(
        "CREATE TABLE unwanted (id INT)",
        "ALTER TABLE unwanted ADD v INT",
        "CREATE TABLE x.t (id INT)",
        "ALTER TABLE x.t ADD v INT",
        "TRUNCATE TABLE t",
    )
    assert len(tracker.history) == 0


def test_a_dropped_database_takes_its_tables_along() -> None:
    tracker, ends = follow("CREATE TABLE t (id INT)", "DROP DATABASE x", "DROP DATABASE d")
    assert [columns(tracker, end) for end in ends] == [["id"], ["id"], None]
    reason = tracker.history.reason(LogBuilder().position(ends[-1]), "d", "t")
    assert reason.startswith("its database was dropped at mysql-bin.000001:")


UNFOLLOWED = [
    ("ALTER TABLE t ADD v INT", "d.t"),
    ("RENAME TABLE t TO u", "d.t"),
    ("RENAME TABLE unwanted TO u", "d.u"),
    ("ALTER TABLE unwanted RENAME t", "d.t"),
]


@pytest.mark.parametrize(("ddl", "table"), UNFOLLOWED)
def test_ddl_that_is_not_followed(ddl: str, table: str) -> None:
    """Live it stops the stream; in the past it makes the table unknown from there on."""
    with pytest.raises(SchemaChangedError, match="not followed yet") as caught:
        follow("CREATE TABLE t (id INT)", ddl)
    assert caught.value.table == table
    tracker, ends = follow("CREATE TABLE t (id INT)", ddl, strict=False)
    assert columns(tracker, ends[0]) == ["id"]
    assert columns(tracker, ends[1], table.removeprefix("d.")) is None
    reason = tracker.history.reason(LogBuilder().position(ends[1]), *table.split("."))
    assert "is not followed yet" in reason


def test_what_the_server_settled_is_not_looked_at_again() -> None:
    """A baseline made behind the statement already has what it did."""
    tracker, (_, end) = follow("CREATE TABLE t (id INT)", "CREATE TABLE t2 (id INT)")
    schema = tracker.history.at(LogBuilder().position(end), "d", "t")
    assert schema is not None
    settled = SchemaHistory().with_table(LogBuilder().position(10_000), schema)
    tracker, _ = follow("ALTER TABLE t ADD v INT", history=settled)
    assert tracker.history == settled


def test_the_database_gives_the_charset() -> None:
    tracker, ends = follow(
        "CREATE TABLE t (s VARCHAR(9))",
        "ALTER DATABASE d DEFAULT CHARSET utf8mb4",
        "CREATE TABLE u (s VARCHAR(9))",
        charsets={"d": "latin1"},
    )
    found = []
    for table in ("t", "u"):
        schema = tracker.history.at(LogBuilder().position(ends[-1]), "d", table)
        assert schema is not None
        found.append(schema.columns[0].charset)
    assert found == ["latin1", "utf8mb4"]


def test_names_without_case() -> None:
    tracker, ends = follow("CREATE TABLE D.T (id INT)", "DROP DATABASE D", case_sensitive=False)
    assert columns(tracker, ends[0]) == ["id"]
    assert columns(tracker, ends[1]) is None
