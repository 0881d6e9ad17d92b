"""The schema of a `struct` payload: the current tables, as Spark types.

Spark calls `schema()` before it knows the checkpoint, so it can only return the current schemas of
the server (or the last ones in the binlog). decoder/schemas/struct_types.py determines the Arrow
types; this module converts them to Spark's.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.retry import initial_retry
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter, TableFilter
from pyspark_mysqlbinlog.connector.schemas.initial_history import history_of_files
from pyspark_mysqlbinlog.connector.schemas.schema_ddl import declared_tables
from pyspark_mysqlbinlog.connector.schemas.table_maps import described_tables
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schemas
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions, arrow_type
from pyspark_mysqlbinlog.errors import OptionError, UnknownSchemaError, UnknownTableError
from pyspark_mysqlbinlog.names import table_folding
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["payload_type", "read_payload_type", "struct_of"]


def read_payload_type(options: Options) -> StructType:
    """Return the type of `before` and `after`; queries the server, or reads the files' DDL.

    Raises UnknownTableError for a table that does not exist.
    """
    if options.path is not None:
        case_sensitive = options.files_are_case_sensitive
        tables = options.table_filter(case_sensitive)
        log = FileLog.open(options.path)
        history = history_of_files(log, options)
        literals = [*map(table_folding(case_sensitive), tables.literals)]
        named = {
            name: schema for name in literals if (schema := _last_known(history, *name)) is not None
        }
        unnamed = [name for name in literals if name not in named]
        named |= described_tables(log, log.begins()[0], unnamed)
        schemas = [named.get(name) or _last_of(history, *name) for name in literals]
        columns = options.column_filter(case_sensitive)
        schemas = _masked(options, schemas, case_sensitive)
        return payload_type(schemas, options.struct_options, columns, nested=tables.nests)
    settings = options.server_settings()
    with initial_retry()(ReplicaClient.connect, settings) as client:
        case_sensitive = ServerFacts.ask(client).case_sensitive
        tables = options.table_filter(case_sensitive)
        schemas = read_table_schemas(client, tables.captures)
    schemas += _dropped(options, tables, schemas, case_sensitive)
    _check_all(tables, schemas, case_sensitive)
    columns = options.column_filter(case_sensitive)
    schemas = _masked(options, schemas, case_sensitive)
    return payload_type(schemas, options.struct_options, columns, nested=tables.nests)


def _masked(
    options: Options, schemas: Sequence[TableSchema], case_sensitive: bool
) -> list[TableSchema]:
    """Return the tables with the types of masked columns."""
    transforms = options.transforms(case_sensitive)
    return [schema if transforms is None else transforms.masked(schema) for schema in schemas]


def _dropped(
    options: Options, tables: TableFilter, found: list[TableSchema], case_sensitive: bool
) -> list[TableSchema]:
    """Return tables that the server does not have now, from schemaDdl."""
    if options.schema_ddl is None:
        return []
    folded = table_folding(case_sensitive)
    missing = set(map(folded, tables.literals))
    missing -= {folded((schema.database, schema.table)) for schema in found}
    history = declared_tables(options.schema_ddl)
    names = [name for name in history.tables() if folded(name) in missing]
    return [_last_of(history, *name) for name in names]


def payload_type(
    schemas: Sequence[TableSchema],
    options: StructOptions,
    columns: ColumnFilter,
    *,
    nested: bool,
) -> StructType:
    """Return one table's struct, or several tables' nested by database: ``shop.orders.id``."""
    if not nested:
        return struct_of(schemas[0], options, columns)
    databases: dict[str, list[StructField]] = {}
    for schema in schemas:
        table = StructField(schema.table, struct_of(schema, options, columns))
        databases.setdefault(schema.database, []).append(table)
    return StructType([StructField(name, StructType(each)) for name, each in databases.items()])


def struct_of(schema: TableSchema, options: StructOptions, columns: ColumnFilter) -> StructType:
    """Return one table's columns without excluded ones, all nullable: images may lack any."""
    fields = [
        StructField(column.name, _spark_type(arrow_type(column, options)))
        for column in schema.columns
        if not columns.excludes(schema.database, schema.table, column.name)
    ]
    if not fields:
        raise OptionError(
            f"option excludeColumns leaves no column of {schema.full_name}: exclude the table"
        )
    return StructType(fields)


def _spark_type(type_: pa.DataType) -> DataType:
    return from_arrow_type(type_, prefer_timestamp_ntz=True)


def _last_known(history: SchemaHistory, database: str, table: str) -> TableSchema | None:
    """Return the last schema of a table in a log; None if it has none."""
    for _, schema in reversed(history.versions(database, table)):
        if isinstance(schema, TableSchema):
            return schema
    return None


def _last_of(history: SchemaHistory, database: str, table: str) -> TableSchema:
    """Return the last schema of a table in a log."""
    schema = _last_known(history, database, table)
    if schema is not None:
        return schema
    versions = history.versions(database, table)
    if not versions:
        raise UnknownTableError(
            "option tables: the binlog has no CREATE TABLE of this table; check the spelling, or"
            " begin with the file that has it, or provide it with schemaDdl, or set payload=json",
            table=f"{database}.{table}",
        )
    last = versions[-1][1]
    reason = f" ({last.reason})" if isinstance(last, UnknownSchema) and last.reason else ""
    raise UnknownSchemaError(
        "the binlog does not contain this table's columns, which payload=struct requires"
        f"{reason}; begin with the file that has its CREATE TABLE, or provide it with schemaDdl, or"
        " set payload=json",
        table=f"{database}.{table}",
    )


def _check_all(tables: TableFilter, schemas: list[TableSchema], case_sensitive: bool) -> None:
    folded = table_folding(case_sensitive)
    found = {folded((schema.database, schema.table)) for schema in schemas}
    for database, table in tables.literals:
        if folded((database, table)) not in found:
            raise UnknownTableError(
                "option tables: the server does not have this table, and payload=struct needs its"
                " columns; check the spelling and the account's SELECT grant; for a dropped table,"
                " provide its CREATE TABLE with schemaDdl, or its columns with .schema(…), or set"
                " payload=json",
                table=f"{database}.{table}",
            )
