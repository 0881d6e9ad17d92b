"""Files that start after a CREATE DATABASE, whose character set their tables inherit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql.types import StringType

from helpers.logs.binlog_download import download
from helpers.servers import Server
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.datasource import MySQLBinlogDataSource
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.errors import UnknownSchemaError

# Each test runs with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

DATABASE = "inherits"
LATIN1, UTF8MB4, UTF8 = "latin1_swedish_ci", "utf8mb4_general_ci", "utf8_general_ci"
UNPROVEN = "is not certain"
WRONG = "it is not that of its session's collation_server"

# The database's character set, the session's collation_server, the columns after the key, a text,
# and the error without the CREATE DATABASE; empty if there is none.
CASES: list[tuple[str, str, str, str, str]] = [
    ("utf8mb4", LATIN1, "a TEXT", "é€", UNPROVEN),
    ("utf8mb4", UTF8MB4, "a TEXT", "é€", UNPROVEN),
    ("utf8mb4", UTF8MB4, "a TEXT, b VARCHAR(20)", "é€", ""),
    ("utf8mb4", UTF8MB4, "a CHAR(20)", "é€", ""),
    ("utf8", UTF8, "a CHAR(20)", "é€", ""),
    ("utf8mb4", LATIN1, "a TEXT, b VARCHAR(20)", "é€", WRONG),
    ("latin1", UTF8MB4, "a VARCHAR(20)", "é", WRONG),
    ("latin1", UTF8MB4, "a TEXT", "é", UNPROVEN),
    ("latin1", LATIN1, "a VARCHAR(20)", "é", UNPROVEN),
    ("greek", LATIN1, "a VARCHAR(20)", "α", UNPROVEN),
    ("greek", LATIN1, "a ENUM('x', 'y')", "x", UNPROVEN),
    ("utf8mb4", LATIN1, "a TEXT CHARACTER SET utf8", "é€", ""),
    ("greek", LATIN1, "a TEXT CHARACTER SET utf8mb4, b BLOB", "é€", ""),
]


def texts(path: Path, **options: str) -> list[dict[str, str]]:
    """Return column `a` of the rows of inherits.t."""
    parsed = parse_options(
        {"path": str(path), "tables": f"{DATABASE}.t", "payload": "json"} | options
    )
    reader = MySQLBinlogReader(parsed, output_schema(StringType()))
    rows = [
        json.loads(row["after"])
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]
    return [{name: value for name, value in row.items() if name == "a"} for row in rows]


@pytest.mark.parametrize(("charset", "collation", "columns", "text", "says"), CASES)
def test_unknown_database_charset_is_rejected_only_if_needed(
    charset: str,
    collation: str,
    columns: str,
    text: str,
    says: str,
    *,
    any_server: Server,
    tmp_path: Path,
) -> None:
    any_server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE} CHARACTER SET {charset}"
    )
    any_server.rotate()
    name, _ = any_server.position()
    any_server.execute(
        f"SET collation_server = {collation}",
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, {columns})",
        f"INSERT INTO {DATABASE}.t (id, a) VALUES (1, '{text}')",
    )
    shown = any_server.execute(f"SELECT a FROM {DATABASE}.t")[0][0]
    database_ddl = str(any_server.execute(f"SHOW CREATE DATABASE {DATABASE}")[0][1])
    any_server.rotate()
    any_server.execute(f"DROP DATABASE {DATABASE}")
    download(any_server, [name], tmp_path)
    path = tmp_path / name
    expected = [{"a": shown}]
    struct = {"path": str(path), "tables": f"{DATABASE}.t"}
    if says:
        with pytest.raises(UnknownSchemaError) as caught:
            texts(path)
        assert says in str(caught.value)
        assert f"CREATE DATABASE `{DATABASE}`" in str(caught.value)
        assert "schemaDdl" in str(caught.value)
        assert "of another time" not in str(caught.value)
        with pytest.raises(UnknownSchemaError, match="CREATE DATABASE `inherits`"):
            MySQLBinlogDataSource(struct).schema()
    else:
        assert texts(path) == expected
        MySQLBinlogDataSource(struct).schema()
    ddl = tmp_path / "schema.sql"
    ddl.write_text(database_ddl, encoding="utf-8")
    assert texts(path, schemaDdl=str(ddl)) == expected
    MySQLBinlogDataSource(struct | {"schemaDdl": str(ddl)}).schema()
