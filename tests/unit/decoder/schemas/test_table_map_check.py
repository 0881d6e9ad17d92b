"""Table maps that do not fit the schema: the error names table, column, expected and found."""

from __future__ import annotations

import pytest

from helpers.parity.decoding import simple_schema, table_map_body
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType as F
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.payloads.plan import RowPlan
from pyspark_mysqlbinlog.decoder.schemas.table_map_check import expected_fields
from pyspark_mysqlbinlog.errors import SchemaMismatchError
from pyspark_mysqlbinlog.tables import ColumnSchema as C

ID = C("id", "int", nullable=False)

FIELDS: list[tuple[C, list[tuple[int, int]]]] = [
    (C("a", "mediumint"), [(F.INT24, 0)]),
    (C("a", "float"), [(F.FLOAT, 4)]),
    (C("a", "decimal", 10, 2), [(F.NEWDECIMAL, 0x0A02)]),
    (C("a", "bit", 9), [(F.BIT, 0x0101)]),
    (C("a", "bit", 64), [(F.BIT, 0x0800)]),
    (C("a", "char", 10, charset="utf8mb4"), [(F.STRING, 0xFE28)]),
    (C("a", "char", 255, charset="utf8mb4"), [(F.STRING, 0xCEFC)]),
    (C("a", "char", 255, charset="utf8"), [(F.STRING, 0xDEFD)]),
    (C("a", "binary", 255), [(F.STRING, 0xFEFF)]),
    (C("a", "varchar", 30, charset="utf8mb4"), [(F.VARCHAR, 120)]),
    (C("a", "varchar", 30, charset="utf8"), [(F.VARCHAR, 90)]),
    (C("a", "varchar", 30, charset="latin1"), [(F.VARCHAR, 30)]),
    (C("a", "varchar", 30, charset="gbk"), [(F.VARCHAR, 60)]),
    (C("a", "varbinary", 30), [(F.VARCHAR, 30)]),
    (C("a", "tinyblob"), [(F.BLOB, 1)]),
    (C("a", "longtext", charset="ascii"), [(F.BLOB, 4)]),
    (C("a", "enum", labels=("x",) * 255), [(F.STRING, 0xF701)]),
    (C("a", "enum", labels=("x",) * 256), [(F.STRING, 0xF702)]),
    (C("a", "set", labels=("x",) * 33), [(F.STRING, 0xF808)]),
    (C("a", "datetime", 0), [(F.DATETIME2, 0), (F.DATETIME, 0)]),
    (C("a", "datetime", 3), [(F.DATETIME2, 3)]),
    (C("a", "time"), [(F.TIME2, 0), (F.TIME, 0)]),
    (C("a", "timestamp", 6), [(F.TIMESTAMP2, 6)]),
    (C("a", "date"), [(F.DATE, 0), (F.NEWDATE, 0)]),
    (C("a", "json"), [(F.JSON, 4)]),
    (C("a", "point"), [(F.GEOMETRY, 4)]),
]


@pytest.mark.parametrize(("column", "fields"), FIELDS)
def test_column_schema_gives_its_expected_binlog_fields(
    column: C, fields: list[tuple[int, int]]
) -> None:
    assert list(expected_fields(column)) == fields


MISFITS = [
    (C("v", "varchar", 20, charset="utf8mb4"), (F.VARCHAR, 40), True, "VARCHAR of 80 bytes.*of 40"),
    (C("v", "decimal", 10, 2), (F.NEWDECIMAL, 0x0A03), True, r"\(10,2\).*\(10,3\)"),
    (C("v", "datetime", 3), (F.DATETIME2, 0), True, r"DATETIME2\(3\).*DATETIME2\(0\)"),
    (C("v", "datetime", 3), (F.DATETIME, 0), True, r"DATETIME2\(3\).*found DATETIME in"),
    (C("v", "int"), (F.LONGLONG, 0), True, "expected LONG .*found LONGLONG"),
    (C("v", "text", charset="utf8"), (F.BLOB, 3), True, "BLOB with 2.*BLOB with 3"),
    (C("v", "char", 9, charset="latin1"), (F.STRING, 0xF701), True, "CHAR of 9.*ENUM of 1"),
    (C("v", "int", nullable=False), (F.LONG, 0), True, "expected NOT NULL, found NULL"),
    (C("v", "int"), (F.LONG, 0), False, "expected NULL, found NOT NULL"),
]


@pytest.mark.parametrize(("column", "field", "nullable", "words"), MISFITS)
def test_table_map_that_does_not_fit_a_column_raises_schema_mismatch_error(
    column: C, field: tuple[int, int], nullable: bool, words: str
) -> None:
    table_map = TableMap.parse(table_map_body([(F.LONG, 0), field], [False, nullable]))
    with pytest.raises(SchemaMismatchError, match=rf"column 2 `v`: .*{words}.*table d\.t"):
        RowPlan.make(table_map, simple_schema(ID, column))


def test_table_map_with_all_columns_nullable_fits_not_null_columns() -> None:
    """The table map is that of an outer join's inner table."""
    table_map = TableMap.parse(table_map_body([(F.LONG, 0)] * 2, [True, True]))
    RowPlan.make(table_map, simple_schema(ID, C("v", "int", nullable=False)))


def test_wrong_number_of_columns_raises_schema_mismatch_error() -> None:
    table_map = TableMap.parse(table_map_body([(F.LONG, 0)] * 2, [False, True]))
    with pytest.raises(SchemaMismatchError, match=r"expected 1 columns \(`id`\), found 2"):
        RowPlan.make(table_map, simple_schema(ID))
