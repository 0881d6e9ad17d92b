"""Checks of the captured tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from pyspark_mysqlbinlog.checkpoints.position import BEGINNING
from pyspark_mysqlbinlog.connector.delta.rows.columns import check_distinct, delta_name
from pyspark_mysqlbinlog.connector.delta.sync.snapshot.keyless_snapshot import unreadable_error
from pyspark_mysqlbinlog.connector.doctor.examined import ExaminedServer
from pyspark_mysqlbinlog.connector.doctor.finding import Finding, ok, stop, warning
from pyspark_mysqlbinlog.connector.doctor.key_statements import key_statements, numbered
from pyspark_mysqlbinlog.connector.schemas.pattern_check import findings
from pyspark_mysqlbinlog.connector.server.cascades import Cascade, cascades_into
from pyspark_mysqlbinlog.connector.server.unlogged_changes import (
    indirect_writers,
    warn_of_unlogged_changes,
)
from pyspark_mysqlbinlog.connector.server.warn_once import collected_warnings
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import is_innodb, table_sizes
from pyspark_mysqlbinlog.connector.source.start_offset import table_checks
from pyspark_mysqlbinlog.decoder.schemas.struct_types import MOST_DIGITS
from pyspark_mysqlbinlog.errors import AccessDeniedError, MySQLBinlogError, UnknownTableError
from pyspark_mysqlbinlog.names import Table, fold, quoted
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = [
    "column_names",
    "column_types",
    "foreign_keys",
    "keyless_locks",
    "primary_keys",
    "snapshot_locks",
    "snapshot_size",
    "statement_sessions",
    "tables",
    "unlogged_tables",
    "views_and_triggers",
    "zero_dates",
]

_MAX_NAMED = 10
# A mirror's snapshot has at least this rate on two cores (docs/explanation/benchmarks.md).
_ROWS_PER_SECOND = 100_000
_FIRST_RENAME_COLUMN, _FIRST_RENAME_COLUMN_MARIADB = (8, 0, 0), (10, 5, 2)
_STATEMENT_SESSIONS = (
    "SELECT DISTINCT t.PROCESSLIST_USER, t.PROCESSLIST_HOST, v.VARIABLE_VALUE"
    " FROM performance_schema.variables_by_thread v"
    " JOIN performance_schema.threads t ON t.THREAD_ID = v.THREAD_ID"
    " WHERE v.VARIABLE_NAME = 'binlog_format' AND v.VARIABLE_VALUE <> 'ROW'"
    " AND t.PROCESSLIST_ID <> CONNECTION_ID()"
)


def tables(server: ExaminedServer) -> Finding:
    """The captured tables and columns exist, and the account can see all of them (SELECT)."""
    errors = list(server.unreadable)
    unread = {error.table for error in errors}
    with collected_warnings() as warnings:
        checks = table_checks(
            server.client, server.options, server.tables, server.history, BEGINNING
        )
        for check in checks:
            try:
                check()
            except MySQLBinlogError as error:
                if not (isinstance(error, UnknownTableError) and error.table in unread):
                    errors.append(error)
    statements = [*_selects(server, errors, warnings)]
    if errors:
        return stop([str(error) for error in errors], statements=statements)
    if warnings:
        return warning("; ".join(warnings), statements=statements)
    return ok(f"captured tables: {len(server.schemas):,}")


def _selects(
    server: ExaminedServer, errors: Sequence[MySQLBinlogError], warnings: Sequence[str]
) -> Iterable[str]:
    """Yield the grants of SELECT that the errors and warnings ask for."""
    by_name = {".".join(name): name for name in (*server.tables.literals, *server.names)}
    by_name |= {
        str(error.table): (database, table)
        for error in errors
        for database, dot, table in [str(error.table).partition(".")]
        if dot and str(error.table) not in by_name
    }
    for error in errors:
        is_of_grant = isinstance(error, AccessDeniedError | UnknownTableError)
        if is_of_grant and error.table is not None:
            yield server.remedies.grant("SELECT", quoted(*by_name[error.table]))
    texts = [*warnings, *(error.message for error in errors)]
    for finding in findings(server.tables, server.grants, server.names):
        if finding.select_on is not None and finding.text in texts:
            yield server.remedies.grant("SELECT", finding.select_on)


def primary_keys(server: ExaminedServer) -> Finding:
    """Every table has a key that identifies its rows."""
    keyless = [schema for schema in server.schemas if not schema.row_key]
    if not keyless:
        return ok("every table has a primary key, or a unique key of NOT NULL columns")
    statements = key_statements(server.client, keyless)
    advice = ["a new column is visible to SELECT *: check the programs that use the table"]
    if others := [each for each in keyless if (each.database, each.table) not in statements]:
        advice.append(
            f"{_named(each.full_name for each in others)}: the key of a partitioned table must have"
            " the columns of its partitioning"
        )
    return warning(
        f"no key identifies the rows of {_named(each.full_name for each in keyless)}: a snapshot"
        " reads each with one SELECT, and a mirror compares all of their columns",
        "a primary key",
        statements=statements.values(),
        advice="; ".join(advice if statements else advice[1:]),
    )


def keyless_locks(server: ExaminedServer) -> Finding | None:
    """A mirror can lock the tables without a key for a moment (LOCK TABLES)."""
    if not (server.for_mirror and server.options.starts_with_snapshot):
        return None
    errors, statements = list[str](), list[str]()
    for schema in server.schemas:
        table = schema.database, schema.table
        engine = server.engines.get(table)
        if schema.row_key or engine is None:
            continue
        missing = server.visibility.missing_lock(table, engine)
        if missing is not None:
            errors.append(str(unreadable_error(missing, schema.full_name)))
            lock = "SELECT, LOCK TABLES", f"{quoted(schema.database)}.*"
            statements.append(server.remedies.grant(*lock))
    if errors:
        return stop(errors, statements=statements)
    return ok("no table without a key lacks LOCK TABLES")


def snapshot_locks(server: ExaminedServer) -> Finding:
    """A snapshot locks no table against writes."""
    locked = [table for table, engine in sorted(server.engines.items()) if not is_innodb(engine)]
    if not locked:
        return ok("all tables are InnoDB")
    shown = [f"{'.'.join(table)} ({server.engines[table]})" for table in locked]
    return warning(
        f"a snapshot locks tables of other engines than InnoDB against writes: {_named(shown)}",
        "InnoDB",
        statements=[f"ALTER TABLE {quoted(*table)} ENGINE = InnoDB" for table in locked],
    )


def foreign_keys(server: ExaminedServer) -> Finding:
    """No foreign key changes rows that the binlog then lacks."""
    found = cascades_into(server.client, set(server.names))
    # MariaDB shows them with another privilege than SELECT.
    databases = sorted({schema.database for schema in server.schemas})
    is_shown = partial(server.grants.allows, "REFERENCES")
    hidden = [each for each in databases if server.remedies.is_mariadb and not is_shown(each)]
    if hidden and not found:
        return warning(
            f"not checked: the account cannot see the foreign keys of {_named(hidden)}",
            statements=[
                server.remedies.grant("REFERENCES", f"{quoted(each)}.*") for each in hidden
            ],
        )
    if not found:
        return ok("no foreign key changes rows without the binlog")
    return warning(
        f"foreign keys change rows of {_named(map(str, found))}; the binlog lacks these changes",
        "RESTRICT, and deletes by the program",
        statements=[each for cascade in found for each in _restrict(server, cascade)],
        advice="a program that relies on them must then change these rows; or reload the tables on"
        " a schedule (option reload)",
    )


def _restrict(server: ExaminedServer, cascade: Cascade) -> list[str]:
    columns = server.client.query(
        "SELECT COLUMN_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND CONSTRAINT_NAME = %s"
        " AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY ORDINAL_POSITION",
        [*cascade.table, cascade.name],
    )
    own, other = (", ".join(quoted(str(row[at])) for row in columns) for at in (0, 1))
    table, name = f"ALTER TABLE {quoted(*cascade.table)}", quoted(cascade.name)
    parent = f"{quoted(*cascade.parent)} ({other})"
    return [
        f"{table} DROP FOREIGN KEY {name}",
        f"{table} ADD CONSTRAINT {name} FOREIGN KEY ({own}) REFERENCES {parent}",
    ]


def unlogged_tables(server: ExaminedServer) -> Finding:
    """No table's rows change without row events: MEMORY and MERGE tables, triggers."""
    with collected_warnings() as warnings:
        warn_of_unlogged_changes(server.client, set(server.names), with_cascades=False)
    if warnings:
        emptied = [table for table, engine in server.engines.items() if engine == "MEMORY"]
        return warning(
            "; ".join(warnings),
            statements=[f"ALTER TABLE {quoted(*table)} ENGINE = InnoDB" for table in emptied],
        )
    return ok("no MEMORY or MERGE table, and no BEFORE UPDATE trigger, loses changes")


def views_and_triggers(server: ExaminedServer) -> Finding:
    """Views and triggers through which a session in statement format may change tables."""
    found = indirect_writers(server.client, set(server.names))
    if not found:
        return ok("the account sees no view, or trigger of another table, that uses a captured one")
    finding = f"some sessions may change {_named(found)}"
    if server.variable("binlog_format") in {"ROW", None}:
        return ok(f"{finding}: harmless while each session has binlog_format=ROW")
    return warning(
        f"{finding}, and their statements stop a query",
        "binlog_format=ROW in every session",
        statements=[server.remedies.set_global("binlog_format", "'ROW'")],
    )


def statement_sessions(server: ExaminedServer) -> Finding | None:
    """No connected session logs statements."""
    shows = not server.remedies.is_mariadb and server.remedies.version >= (5, 7, 0)
    if not shows or server.variable("performance_schema") != "ON":
        return None
    try:
        rows = server.client.query(_STATEMENT_SESSIONS)
    except AccessDeniedError as error:
        return warning(
            f"not checked which sessions log statements: {error.message}",
            statements=[
                server.remedies.grant("SELECT", f"performance_schema.{table}")
                for table in ("variables_by_thread", "threads")
            ],
        )
    if rows:
        shown = sorted(f"{user}@{host} ({value})" for user, host, value in rows)
        return warning(
            f"sessions have another binlog_format: {_named(shown)}; their changes may stop a query,"
            " or be lost if they use a view or trigger",
            "ROW in every session",
            advice="reconnect these programs, and remove their SET binlog_format",
        )
    return ok("each session logs rows")


def column_types(server: ExaminedServer) -> Finding:
    """Spark and Delta have the columns' types."""
    wide = [
        (schema, column)
        for schema, column in _columns(server)
        if column.type == "decimal" and (column.length or 10) > MOST_DIGITS
    ]
    if not wide:
        return ok("Spark and Delta have all types")
    statements = ["SET SESSION sql_mode = 'STRICT_ALL_TABLES'"]
    for schema, column in wide:
        kind = f"decimal({MOST_DIGITS},{min(column.scale or 0, MOST_DIGITS)})"
        definition = _definition(server, schema, column)
        if definition is not None:
            # The type is the first word; it has no space.
            _, _, rest = definition.partition(" ")
            name = quoted(schema.database, schema.table)
            statements.append(f"ALTER TABLE {name} MODIFY {quoted(column.name)} {kind} {rest}")
    return warning(
        f"{_named(f'{schema.full_name}.{column.name}' for schema, column in wide)}: DECIMAL of more"
        f" than {MOST_DIGITS} digits is a string in Spark and Delta",
        f"at most {MOST_DIGITS} digits",
        statements=statements,
        advice="the ALTER fails if a value has more digits; then keep the strings",
    )


def zero_dates(server: ExaminedServer) -> Finding:
    """No date is 0000-00-00 by default, which is NULL in Spark."""
    rows = server.client.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS"
        " WHERE DATA_TYPE IN ('date', 'datetime', 'timestamp')"
        " AND COLUMN_DEFAULT LIKE '%%0000-00-00%%' AND BINARY TABLE_SCHEMA IN %s",
        [tuple(sorted({"", *(schema.database for schema in server.schemas)}))],
    )
    there = {
        ((schema.database, schema.table), fold(column.name)) for schema, column in _columns(server)
    }
    found = [
        (str(database), str(table), str(column))
        for database, table, column in rows
        if ((str(database), str(table)), fold(str(column))) in there
    ]
    if not found:
        return ok("no date column has a zero default")
    return warning(
        f"{_named('.'.join(each) for each in found)}: the default is 0000-00-00, which no type of"
        " Spark holds: it becomes NULL (source.invalid_dates names the column)",
        "NULL, or a real date",
        statements=[
            f"ALTER TABLE {quoted(*table)} ALTER COLUMN {quoted(column)} DROP DEFAULT"
            for *table, column in found
        ],
        advice="existing zero dates stay: SELECT and UPDATE them",
    )


def column_names(server: ExaminedServer) -> Finding | None:
    """Delta has the columns' names."""
    if not server.for_mirror:
        return None
    errors, renamed, statements = list[str](), list[str](), list[str]()
    kept = dict[Table, list[str]]()
    for schema, column in _columns(server):
        kept.setdefault((schema.database, schema.table), []).append(column.name)
        if delta_name(column.name) != column.name:
            renamed.append(f"{schema.full_name}.{column.name} is {delta_name(column.name)}")
            statements += _rename(server, schema, column)
    for (database, table), names in kept.items():
        try:
            check_distinct(names, f"{database}.{table}")
        except MySQLBinlogError as error:
            errors.append(str(error))
    if errors:
        return stop(errors, statements=statements, advice="or --option excludeColumns=…")
    if renamed:
        return warning(
            f"Delta has other names for columns: {_named(renamed)}",
            "names without spaces and ,;{}()=`",
            statements=statements,
            advice="or use the other names in Delta",
        )
    return ok("Delta has all names of columns")


def _rename(server: ExaminedServer, schema: TableSchema, column: ColumnSchema) -> list[str]:
    """Return the statement that gives a column a name that Delta has."""
    names = {fold(delta_name(each.name)) for each in schema.columns if each is not column}
    wanted = delta_name(column.name)
    if delta_name(wanted) != wanted:
        # A reserved name with another underscore is reserved, too.
        wanted = wanted.strip("_")
    free = next(each for each in (wanted, *numbered(f"{wanted}_")) if fold(each) not in names)
    table = f"ALTER TABLE {quoted(schema.database, schema.table)}"
    is_mariadb, version = server.remedies.is_mariadb, server.remedies.version
    if version >= (_FIRST_RENAME_COLUMN_MARIADB if is_mariadb else _FIRST_RENAME_COLUMN):
        return [f"{table} RENAME COLUMN {quoted(column.name)} TO {quoted(free)}"]
    definition = _definition(server, schema, column)
    if definition is None:
        return []
    return [f"{table} CHANGE {quoted(column.name)} {quoted(free)} {definition}"]


def _definition(server: ExaminedServer, schema: TableSchema, column: ColumnSchema) -> str | None:
    """Return a column's definition after its name, as SHOW CREATE TABLE has it."""
    table = quoted(schema.database, schema.table)
    text = str(server.client.query(f"SHOW CREATE TABLE {table}")[0][1])
    begin = f"{quoted(column.name)} "
    for line in map(str.strip, text.split("\n")):
        if line.startswith(begin):
            return line.removeprefix(begin).removesuffix(",")
    return None


def snapshot_size(server: ExaminedServer) -> Finding:
    """The estimated rows of a snapshot, and its time."""
    sizes = table_sizes(server.client, set(server.names))
    rows = sum(size.rows for size in sizes.values())
    size = sum(each.rows * each.row_bytes for each in sizes.values())
    seconds = rows / _ROWS_PER_SECOND
    time = f"{seconds / 3600:,.1f} hours" if seconds > 3600 else f"{seconds / 60:,.0f} minutes"
    return ok(
        f"about {rows:,} rows with {size / 1e6:,.0f} MB:"
        f" {'less than a minute' if seconds < 60 else f'at most {time}'} at"
        f" {_ROWS_PER_SECOND:,} rows a second"
    )


def _columns(server: ExaminedServer) -> Iterable[tuple[TableSchema, ColumnSchema]]:
    """Yield the columns that are not excluded."""
    columns = server.options.column_filter(server.facts.case_sensitive)
    for schema in server.schemas:
        for column in schema.columns:
            if not columns.excludes(schema.database, schema.table, column.name):
                yield schema, column


def _named(names: Iterable[str]) -> str:
    """Join names, of many the first ones."""
    found = list(names)
    more = f" and {len(found) - _MAX_NAMED:,} more" if len(found) > _MAX_NAMED else ""
    return f"{', '.join(found[:_MAX_NAMED])}{more}"
