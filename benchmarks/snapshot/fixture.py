"""What the benchmarks of first loads and mirrors share: the server, its tables, the children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.decode.memory import peaks_of
from benchmarks.harness.interleaved import Series
from benchmarks.harness.scale import SnapshotScale
from benchmarks.harness.series import stored_series
from benchmarks.harness.workers import Worker, python_worker
from benchmarks.workload.orders import CREATE, DATABASE, Orders
from helpers.servers import Server

__all__ = ["PYTHON_KINDS", "Bench", "Found", "jdbc_options", "peaks"]

# Rows that are made one by one; the others are copies of them under other keys.
_MADE = 500_000
_COLUMNS = "customer, status, amount, quantity, sku, ordered, changed, weight, priority, note, tags"
# Processes of Spark, by what their command lines contain; the first that fits counts.
_JVM = "org.apache.spark.deploy.SparkSubmit"
PYTHON_KINDS = {
    "driver": "python_streaming_source_runner",
    "worker": "pyspark.daemon",
}
# Looking costs processor time, which the measured ones have to do without.
_BETWEEN_LOOKS = 0.5


@dataclass(slots=True)
class Found:
    """What one part of the benchmark found.

    Attributes
    ----------
    told : sentences on how it was measured.
    head, cells : a table.
    notes : what else there is to say.
    measures : by name, as results.json has them.
    """

    told: str
    head: Sequence[str]
    cells: list[list[str]]
    notes: list[str] = field(default_factory=list)
    measures: dict[str, Any] = field(default_factory=dict)

    def keep(self, series: Mapping[str, Series]) -> None:
        self.measures |= {name: stored_series(found) for name, found in series.items()}


@dataclass(slots=True)
class Bench:
    """One run.

    Attributes
    ----------
    folder : for files; it is removed after the run.
    jars : a folder with Connector/J.
    """

    server: Server
    folder: Path
    jars: Path
    scale: SnapshotScale
    filled: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def worker(self, module: str, **environment: str) -> Iterator[Worker]:
        """Yield a child process that runs a module of this package."""
        number = len(list(self.folder.glob("*.log")))
        log = self.folder / f"{module}-{number}.log"
        # Files of a child that fails are removed with the folder.
        with python_worker(module, log, TMPDIR=str(self.folder), **environment) as worker:
            yield worker

    def fill(self, table: str, rows: int) -> None:
        """Create a table like `bench.orders` with the keys 1 … `rows`, unless it exists.

        The binlog does not contain it.
        """
        if table in self.filled:
            assert self.filled[table] == rows
            return
        name = f"{DATABASE}.{table}"
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
            cursor.execute(CREATE.replace(f"{DATABASE}.orders", name))
            there = min(rows, _MADE)
            orders = Orders()
            made = map(orders.values, range(1, there + 1))
            while some := ",".join(islice(made, 1000)):
                cursor.execute(f"INSERT INTO {name} VALUES {some}")
            while there < rows:
                there += cursor.execute(
                    f"INSERT INTO {name} SELECT id + {there}, {_COLUMNS} FROM {name}"
                    f" WHERE id <= {min(_MADE, rows - there)}"
                )
            # A server does this automatically some time after a table has grown.
            cursor.execute(f"ANALYZE TABLE {name}")
        self.filled[table] = rows

    def small_tables(self, database: str) -> None:
        """Many tables of ten rows."""
        values = ",".join(f"({key}, 'a short text', {key * 7})" for key in range(10))
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute(f"CREATE DATABASE {database}")
            for number in range(self.scale.small_tables):
                name = f"{database}.t{number}"
                cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, a VARCHAR(40), b BIGINT)")
                cursor.execute(f"INSERT INTO {name} VALUES {values}")

    def connector_j(self) -> dict[str, str]:
        """The environment of a Spark that has Connector/J."""
        (jar,) = self.jars.glob("mysql-connector-j-*.jar")
        # Without a cursor the driver holds the whole result of each task.
        return {"BENCH_JARS": str(jar), "BENCH_HEAP": "6g"}


def jdbc_options(server: Server, table: str, rows: int, *, cursor: bool) -> dict[str, str]:
    """Spark's own JDBC source on a table with the keys 1 … `rows`: four partitions by key.

    cursor : the server keeps the result, and the driver fetches 10,000 rows at a time.
    """
    settings = "sslMode=DISABLED&allowPublicKeyRetrieval=true&characterEncoding=UTF-8"
    if cursor:
        settings += "&useCursorFetch=true"
    return {
        "url": f"jdbc:mysql://{server.host}:{server.port}/{DATABASE}?{settings}",
        "driver": "com.mysql.cj.jdbc.Driver",
        "user": server.user,
        "password": server.password,
        "dbtable": table,
        "partitionColumn": "id",
        "lowerBound": "1",
        "upperBound": str(rows),
        "numPartitions": "4",
        "fetchsize": "10000" if cursor else "0",
    }


@contextmanager
def peaks(child: Worker, kinds: Mapping[str, str]) -> Iterator[dict[str, int]]:
    """The most memory in MB that any one process of each kind had meanwhile; the JVM's, too."""
    found: dict[str, int] = {}
    with peaks_of(child, {"jvm": _JVM, **kinds}, _BETWEEN_LOOKS) as seen:
        yield found
    found |= {kind: most >> 20 for kind, most in seen.items() if most}
