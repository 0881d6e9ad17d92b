"""`schemaDdl`: logs that begin after their CREATE TABLE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from helpers.logs.events import LogBuilder
from helpers.logs.recorded_logs import describe
from helpers.parity.decoding import CAPTURED
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.schemas.struct_schema import read_payload_type
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.errors import OptionError, UnknownSchemaError, UnknownTableError

DUMP = """-- MySQL dump 10.13
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `d` /*!40100 DEFAULT CHARACTER SET latin1 */;
USE `d`;
DROP TABLE IF EXISTS `t`;
/*!40101 SET character_set_client = utf8 */;
CREATE TABLE `t` (
  `a;b` int(11) NOT NULL COMMENT 'it''s; -- a comment'
) ENGINE=InnoDB DEFAULT CHARSET=latin1;
INSERT INTO `t` VALUES (1);
DELIMITER ;;
/*!50003 CREATE*/ /*!50003 TRIGGER x BEFORE INSERT ON t FOR EACH ROW BEGIN SET @a = 1; END */;;
DELIMITER ;
# the end
"""


def rows(**options: str) -> list[dict[str, Any]]:
    parsed = parse_options(options)
    reader = MySQLBinlogReader(parsed, output_schema(StringType()))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


@pytest.fixture
def log(tmp_path: Path) -> str:
    """Return a log with an insert into d.t, which has one INT column, but no CREATE TABLE."""
    builder = LogBuilder().format_description().begin().rows(1, "t", 5).xid()
    return str(builder.write(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        DUMP.replace("NOT NULL", ""),
        "create table if not exists d.t (`a;b` int)",
        "USE d; CREATE TABLE x (`a;b` INT); CREATE TABLE t LIKE x",
        "CREATE TABLE d.t (old INT); ALTER TABLE d.t CHANGE old `a;b` INT;",
    ],
)
def test_schema_ddl_file_defines_the_columns_of_a_table(
    text: str, log: str, tmp_path: Path
) -> None:
    ddl = tmp_path / "schema.sql"
    ddl.write_text(text, encoding="utf-8")
    for tables in ("d.t", "d.*"):
        found = rows(path=log, tables=tables, payload="json", schemaDdl=str(ddl))
        assert [row["after"] for row in found] == ['{"a;b":5}']
    options = parse_options({"path": log, "tables": "d.t", "schemaDdl": str(ddl)})
    assert read_payload_type(options).simpleString() == "struct<a;b:int>"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE DATABASE d CHARACTER SET latin1",
        "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `d` /*!40100 DEFAULT CHARACTER SET latin1 */;",
        "create schema d default collate latin1_german1_ci;",
        "ALTER DATABASE d CHARACTER SET latin1",
    ],
)
def test_database_statement_in_schema_ddl_sets_only_the_default_charset(
    text: str, tmp_path: Path
) -> None:
    """It sets the charset that tables inherit, but does not show that no table existed before."""
    ddl = tmp_path / "schema.sql"
    ddl.write_text(text, encoding="utf-8")
    log = LogBuilder().format_description().query("CREATE TABLE t (a INT, b TEXT)")
    log.query("CREATE TABLE IF NOT EXISTS other (a INT)").begin().rows(2, "other", 1).xid()
    path = str(log.write(tmp_path))
    options = parse_options({"path": path, "tables": "d.t", "schemaDdl": str(ddl)})
    assert read_payload_type(options).simpleString() == "struct<a:int,b:string>"
    with pytest.raises(UnknownSchemaError, match="one with IF NOT EXISTS may have created nothing"):
        rows(path=path, tables="d.*", payload="json", schemaDdl=str(ddl))


def test_log_without_create_table_or_schema_ddl_is_rejected_unless_positional(log: str) -> None:
    with pytest.raises(UnknownTableError, match="neither the server nor the binlog has this table"):
        rows(path=log, tables="d.t", payload="json")
    with pytest.raises(UnknownSchemaError, match=r"found 1 without names .* schemaDdl"):
        rows(path=log, tables="d.*", payload="json")
    found = rows(path=log, tables="d.t", payload="json", onUnknownSchema="positional")
    assert [row["after"] for row in found] == ['{"@1":5}']


# (text, part of the error message)
WRONG: list[tuple[str, str]] = [
    ("", "has no CREATE TABLE"),
    ("CREATE TABLE t (id INT)", "has no database for 'CREATE TABLE t"),
    ("CREATE TABLE d.t (id WHATEVER)", "can't be followed"),
    ("CREATE TABLE d.t (v VARCHAR(9))", "character set"),
    ("CREATE DATABASE d; CREATE TABLE d.t (v VARCHAR(9))", "character set"),
    ("CREATE DATABASE d CHARACTER SET klingon", "a CREATE DATABASE that can't be followed"),
    ("nonsense", "a statement that is not known: 'nonsense'"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_unusable_schema_ddl_file_is_rejected(
    text: str, message: str, log: str, tmp_path: Path
) -> None:
    ddl = tmp_path / "schema.sql"
    ddl.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError) as caught:
        rows(path=log, tables="d.t", payload="json", schemaDdl=str(ddl))
    assert str(caught.value).startswith(f"option schemaDdl: {str(ddl)!r} ")
    assert message in str(caught.value)
    with pytest.raises(OptionError, match="can't be read: No such file"):
        rows(path=log, tables="d.t", payload="json", schemaDdl=str(tmp_path / "none"))


def test_recorded_log_from_its_third_file_with_schema_ddl_gives_the_same_rows(
    tmp_path: Path,
) -> None:
    described = describe("rotations")
    whole = rows(path=str(CAPTURED / "rotations.*.binlog"), tables="*.*", payload="json")
    for number in (3, 4, 5):
        name = f"rotations.{number:03}.binlog"
        (tmp_path / name).write_bytes((CAPTURED / name).read_bytes())
    creates = [
        each["sql"] if isinstance(each, dict) else each
        for each in described["statements"]
        if (each["sql"] if isinstance(each, dict) else each).upper().startswith("CREATE TABLE")
    ]
    ddl = tmp_path / "schema.sql"
    database = described["database"]
    text = f"CREATE DATABASE {database} CHARSET utf8mb4; USE {database};\n" + ";\n".join(creates)
    ddl.write_text(text, encoding="utf-8")
    found = rows(path=str(tmp_path / "*.binlog"), tables="*.*", payload="json", schemaDdl=str(ddl))
    expected = [row for row in whole if row["seq"]["file"] >= 3]
    assert len(found) == len(expected) > 0
    for found_row, expected_row in zip(found, expected, strict=True):
        assert (found_row["after"], found_row["before"]) == (
            expected_row["after"],
            expected_row["before"],
        )
