"""The row changes of a MySQL server as a Spark data source: ``format("mysqlbinlog")``.

Spark imports every top-level ``pyspark_*`` package at the first data-source look-up of any session,
also of those that never use this one. So nothing is imported here until it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.delta.mirror import DeltaMirror
    from pyspark_mysqlbinlog.connector.metrics.listener import MySQLBinlogMetrics
    from pyspark_mysqlbinlog.connector.source.datasource import (
        MySQLBinlogDataSource as DefaultSource,
    )
    from pyspark_mysqlbinlog.errors import cause_of

    __version__: str

__all__ = ["DefaultSource", "DeltaMirror", "MySQLBinlogMetrics", "__version__", "cause_of"]


def __getattr__(name: str) -> object:
    if name == "DefaultSource":
        module = import_module("pyspark_mysqlbinlog.connector.source.datasource")
        return module.MySQLBinlogDataSource
    if name == "DeltaMirror":
        return import_module("pyspark_mysqlbinlog.connector.delta.mirror").DeltaMirror
    if name == "MySQLBinlogMetrics":
        return import_module("pyspark_mysqlbinlog.connector.metrics.listener").MySQLBinlogMetrics
    if name == "cause_of":
        return import_module("pyspark_mysqlbinlog.errors").cause_of
    if name == "__version__":
        return import_module("importlib.metadata").version("pyspark-mysqlbinlog")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
