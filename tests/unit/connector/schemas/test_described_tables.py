"""Tables whose columns only the metadata in the binlog describes (binlog_row_metadata=FULL)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.logs.events import LogBuilder
from helpers.logs.later_logs import LATER, assert_equals_select, read, schemas_of
from helpers.parity.payload_faces import variant_image
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS
from pyspark_mysqlbinlog.decoder.sql.classifier import classify
from pyspark_mysqlbinlog.errors import SchemaMismatchError, UnknownTableError
from pyspark_mysqlbinlog.protocol.binlog_files.files import FileStream
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.messages import Query

pytestmark = pytest.mark.usefixtures("implementation")

NAMES = "fx_full_metadata.t,fx_full_metadata.k"
CREATE = (
    "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, n TINYINT UNSIGNED,"
    " e ENUM('a','é','😀') CHARACTER SET utf8mb4, s SET('x','y') CHARACTER SET utf8mb4,"
    " l VARCHAR(20) CHARACTER SET latin1, u VARCHAR(20) CHARACTER SET utf8mb4,"
    " b VARBINARY(10), g GEOMETRY SRID 4326, hidden INT)"
)


def without_ddl(scenario: str, folder: Path, events: int = 1 << 20) -> Path:
    """Write the first file of a scenario without its DDL, up to this number of events."""
    source = LATER / f"{scenario}.001.binlog"
    log = LogBuilder(source.name)
    walker = EventReader(source.name, 4)
    with FileStream(source) as stream:
        while (raw := stream.next_event()) is not None and len(log.raws) < events:
            event = walker.feed(raw)
            assert event is not None
            if event.type == EventType.ROTATE_EVENT:
                break
            if event.type == EventType.QUERY_EVENT:
                query = Query.parse(event.body)
                if classify(query.sql, query.database).kind in DDL_KINDS:
                    # Remove its GTID event, too.
                    log.pos -= len(log.raws.pop())
                    continue
            log.timestamp = event.timestamp
            log.add(event.type, event.body, event.flags)
    return log.write(folder)


@pytest.mark.parametrize("payload", ["json", "struct", "variant"])
def test_full_row_metadata_is_read_without_table_definitions(payload: str, tmp_path: Path) -> None:
    path = without_ddl("full_metadata", tmp_path)
    more = {"schemaEvolutionMode": "rescue"} if payload == "struct" else {}
    rows = read(str(path), payload, tables=NAMES, **more)
    assert len(rows) == 6
    if payload == "json":
        assert_equals_select(rows, "full_metadata", payload, renamed={"n": "m"})
        # Metadata does not show whether a column is virtual.
        assert rows[2]["source"]["missing"] == ["before.g"]
        assert rows[0]["source"]["key"] == ["id"]
        assert rows[-1]["source"]["key"] == ["a", "b"]
    if payload == "variant":
        texts = read(str(path), "json", tables=NAMES)
        now = {schema.table: schema for schema in schemas_of("full_metadata")}
        for row, text in zip(rows, texts, strict=True):
            for name in ("op", "seq", "source"):
                assert row[name] == text[name]
            for side in ("before", "after"):
                # The JSON is compared with SELECT, see above. Earlier images have m as n.
                expected = text[side] and json.loads(text[side])
                schema = now[row["table"]]
                if expected and "n" in expected:
                    columns = (replace(c, name="n") if c.name == "m" else c for c in schema.columns)
                    schema = replace(schema, columns=tuple(columns))
                image = row[side] and json.loads(variant_image(schema, row[side]))
                assert image == expected
    if payload == "struct":
        assert rows[3]["after"]["fx_full_metadata"]["t"]["m"] == 3
        assert rows[0]["_rescued_data"] == '{"after":{"n":200}}'


def test_minimal_row_metadata_without_definitions_raises_unknown_table_error(
    tmp_path: Path,
) -> None:
    path = without_ddl("charsets", tmp_path)
    with pytest.raises(UnknownTableError, match="neither the server nor the binlog"):
        read(str(path), "json", tables="fx_charsets.t_latin1")


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("", "", ""),
        ("n TINYINT", "m TINYINT", "column 2 `m`: expected the name `m`, found `n`"),
        ("n TINYINT UNSIGNED", "n TINYINT", "`n`: expected it signed, found UNSIGNED"),
        ("BIGINT UNSIGNED", "BIGINT", "`id`: expected it signed, found UNSIGNED"),
        (", hidden INT", "", "expected 8 columns .* found 9 in the table map"),
        ("hidden INT", "hidden BIGINT", "`hidden`: expected LONGLONG .* found LONG in the table"),
        ("hidden INT", "hidden INT UNSIGNED", "`hidden`: expected it UNSIGNED, found signed"),
        ("latin1", "cp1250", "`l`: expected the character set cp1250, found latin1"),
        ("'a','é'", "'é','a'", "`e`: expected the labels"),
        ("'x','y'", "'y','x'", "`s`: expected the labels"),
        ("'x','y') CHARACTER SET utf8mb4", "'x','y') CHARACTER SET utf8", "`s`: .*set utf8, found"),
    ],
)
def test_metadata_that_contradicts_the_schema_is_an_error(
    right: str, wrong: str, words: str, tmp_path: Path
) -> None:
    path = without_ddl("full_metadata", tmp_path, events=7)
    ddl = tmp_path / "tables.sql"
    text = CREATE.replace(right, wrong)
    ddl.write_text(f"USE fx_full_metadata;\n{text};\n", encoding="utf-8")
    options = {"tables": "fx_full_metadata.t", "schemaDdl": str(ddl)}
    if not words:
        assert len(read(str(path), "json", **options)) == 2
        return
    assert text != CREATE
    with pytest.raises(SchemaMismatchError, match=words):
        read(str(path), "json", **options)


def test_minimal_metadata_that_contradicts_the_schema_is_an_error(tmp_path: Path) -> None:
    path = without_ddl("numbers", tmp_path)
    ddl = tmp_path / "tables.sql"
    columns = ", ".join(f"c{n} BIT({bits})" for n, bits in enumerate((1, 7, 8, 9, 33, 64)))
    options = {"tables": "fx_numbers.bits", "schemaDdl": str(ddl)}
    for sign in ("", " UNSIGNED"):
        ddl.write_text(f"CREATE TABLE fx_numbers.bits (id INT{sign} PRIMARY KEY, {columns})")
        if not sign:
            assert read(str(path), "json", **options)
            continue
        with pytest.raises(SchemaMismatchError, match="`id`: expected it UNSIGNED, found signed"):
            read(str(path), "json", **options)
