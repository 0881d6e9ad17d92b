"""Checks that masks and row filters fit the tables, before a row of them is read.

A misspelt name would deliver values, or rows, that the options are to keep out of the sink.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.decoder.transforms.bound_conditions import bind
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import table_folding
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["check_transforms"]


def check_transforms(options: Options, history: SchemaHistory, case_sensitive: bool) -> None:
    """Check the last known columns of every captured table.

    Raises
    ------
    OptionError : a table that an option names is not captured, or neither the server nor the
        binlog has it; or a mask or a condition does not fit its table.
    """
    transforms = options.transforms(case_sensitive)
    if transforms is None:
        return
    captures = options.table_filter(case_sensitive).captures
    folded = table_folding(case_sensitive)
    tables = [name for name in history.tables() if captures(*name)]
    missing = transforms.named_tables - set(map(folded, tables))
    if missing:
        raise OptionError(
            "options maskColumns and rowFilter: no such table is captured; check the spelling and"
            " the option tables, or use a pattern of maskColumns for a table that is created later",
            table=".".join(min(missing)),
        )
    for name in tables:
        shapes = [what for _, what in history.versions(*name) if isinstance(what, TableSchema)]
        if not shapes:
            continue
        transforms.masks(shapes[-1])
        condition = transforms.condition_of(*name)
        if condition is not None:
            bind(condition, shapes[-1])
