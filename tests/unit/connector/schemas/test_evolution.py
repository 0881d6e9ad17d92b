"""The part of a query's struct that is for a table, and its columns without a field there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.schemas.evolution import Evolution
from pyspark_mysqlbinlog.errors import SchemaChangedError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

ID, NEW = ColumnSchema("id", "int"), ColumnSchema("new", "int")
TABLE = pa.struct([("id", pa.int32())])
NESTED = pa.struct([("shop", pa.struct([("orders", TABLE), ("Items", TABLE)]))])


def evolution_of(tables: str, struct: pa.StructType) -> Evolution:
    given = {"tables": tables, "payload": "struct", "schemaEvolutionMode": "failOnNewColumns"}
    options = parse_options({"host": "db", "user": "repl"} | given)
    return Evolution(options, struct, case_sensitive=True, server_table=lambda *_: None)


# Each struct has a field for the column `id` only.
@pytest.mark.parametrize(
    ("tables", "struct", "database", "table"),
    [
        ("shop.orders", TABLE, "shop", "orders"),
        ("shop.orders, shop.items", NESTED, "shop", "orders"),
        # Struct fields are matched case-insensitively, as in Spark.
        ("shop.orders, shop.items", NESTED, "Shop", "items"),
    ],
)
def test_new_column_without_a_struct_field_raises_schema_changed_error(
    tables: str, struct: pa.StructType, database: str, table: str
) -> None:
    evolution = evolution_of(tables, struct)
    evolution.check(TableSchema(database, table, (ID,)))
    with pytest.raises(SchemaChangedError, match="column `new`"):
        evolution.check(TableSchema(database, table, (ID, NEW)))


@pytest.mark.parametrize(("database", "table"), [("shop", "other"), ("other", "orders")])
def test_new_column_of_a_table_outside_the_struct_is_accepted(database: str, table: str) -> None:
    """A schema that is given to the query may omit a table."""
    evolution = evolution_of("shop.orders, shop.items", NESTED)
    evolution.check(TableSchema(database, table, (ID, NEW)))
