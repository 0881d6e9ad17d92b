"""A shop on a real MySQL, its changes in a Spark stream, live in the terminal: `make demo`.

One query shows the changes, another loads the rows that the shop has already into Delta and keeps
a Delta table beside each MySQL table (`DeltaMirror`). In the middle both are stopped and started
again from their checkpoints, while the shop goes on. At the end what the stream told and what the
Delta tables hold is compared with the server, row by row; the exit code is 1 when they differ.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Any

from deltalake import DeltaTable
from pymysql.err import MySQLError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from pyspark_mysqlbinlog import DeltaMirror, cause_of
from shop_server import NoServerError, Server, find_server
from shop_workload import DATABASE, READER, SETUP, TABLES, TEARDOWN, Shop

_MARKS = {"c": ("+", "green"), "u": ("~", "yellow"), "d": ("-", "red")}
_CATCH_UP_TIMEOUT = 120.0

Image = dict[str, Any]


def _image(text: str | None) -> Image | None:
    """A row image; numbers keep their digits."""
    if text is None:
        return None
    image: Image = json.loads(text, parse_float=Decimal)
    return image


class DifferenceError(Exception):
    """A change that does not fit the rows that the changes before it left."""


class Mirror:
    """A sink: prints each change and keeps the tables that the changes make.

    Spark delivers a batch again when a query ends before the batch is committed. `seq` grows from
    change to change, so what is not behind the last one was here before: each change counts once.
    """

    def __init__(self, console: Console) -> None:
        self.tables: dict[str, dict[tuple[Any, ...], Image]] = {name: {} for name in TABLES}
        self.counts: Counter[tuple[str, str]] = Counter()
        self.transactions = 0
        self.repeated = 0
        self.quiet = False
        self.error: DifferenceError | None = None
        self._console = console
        self._last: tuple[int, ...] = ()
        self._last_transaction: tuple[str, int] | None = None
        self._lock = Lock()

    def batch(self, frame: DataFrame, _: int) -> None:
        """For foreachBatch."""
        rows = frame.orderBy("seq").collect()
        with self._lock:
            for row in rows:
                seq = tuple(row["seq"])
                if seq <= self._last:
                    self.repeated += 1
                    continue
                self._last = seq
                self._take(row)

    def _take(self, row: Row) -> None:
        before, after = _image(row["before"]), _image(row["after"])
        key = tuple((after or before or {})[name] for name in row["source"]["key"])
        self.counts[row["table"], row["op"]] += 1
        if not self.quiet:
            self._show(row, key, before, after)
        table = self.tables[row["table"]]
        if before is not None:
            old_key = tuple(before[name] for name in row["source"]["key"])
            held = table.pop(old_key, None)
            if held != before and self.error is None:
                self.error = DifferenceError(
                    f"{row['table']} {old_key}: the before image {before} is not the row {held}"
                )
        if after is not None:
            table[key] = after

    def _show(
        self, row: Row, key: tuple[Any, ...], before: Image | None, after: Image | None
    ) -> None:
        source = row["source"]
        transaction = (source["file"], source["tx_pos"])
        if transaction != self._last_transaction:
            self._last_transaction = transaction
            self.transactions += 1
            self._console.print(
                f"[dim]transaction at {source['file']}:{source['tx_pos']}, {row['ts']:%H:%M:%S}[/]"
            )
        mark, style = _MARKS[row["op"]]
        seq = row["seq"]
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(width=1)
        line.add_column(width=11)
        line.add_column(width=7)
        line.add_column(ratio=1, overflow="ellipsis", no_wrap=True)
        line.add_column(justify="right", style="dim", no_wrap=True)
        line.add_row(
            Text(mark, style=f"bold {style}"),
            Text(row["table"], style="bold"),
            Text("#" + ",".join(map(str, key)), style="cyan"),
            _changes(before, after, source["key"], style),
            f"{seq['file']}:{seq['pos']}/{seq['row']}",
        )
        self._console.print(line)


def _changes(before: Image | None, after: Image | None, keys: list[str], style: str) -> Text:
    """What an update changed, else the row; its key is shown already."""
    text = Text()
    if before is not None and after is not None:
        names = [name for name in after if before[name] != after[name]]
        # The clock changes with everything: news come first.
        for name in sorted(names, key=lambda name: name == "changed"):
            text.append(f"{name} ", style="dim")
            text.append(_shown(before[name]), style="red")
            text.append(" → ", style="dim")
            text.append(f"{_shown(after[name])}  ", style="green")
    else:
        for name, value in (after or before or {}).items():
            if name not in keys:
                text.append(f"{name} ", style="dim")
                text.append(f"{_shown(value)}  ", style=style)
    return text


def _shown(value: Any) -> str:
    return "NULL" if value is None else "''" if value == "" else str(value)


# --- the comparison


def _payload_value(kind: str, value: Any) -> Any:
    """A value of a payload, as pymysql gives a column of that type."""
    if value is None:
        return None
    match kind:
        case "decimal":
            return Decimal(value)
        case "float" | "double":
            return float(value)
        case "date":
            return date.fromisoformat(value)
        case "datetime" | "timestamp":
            return datetime.fromisoformat(value.removesuffix("Z"))
        case "binary" | "varbinary" | "blob":
            return b64decode(value)
        case _:
            return value


def _delta_value(kind: str, value: Any) -> Any:
    """A value of a Delta table, as pymysql gives a column of that type."""
    if value is None:
        return None
    match kind:
        case "timestamp":
            return value.replace(tzinfo=None)
        case "bigint":  # unsigned, it is a decimal(20,0)
            return int(value)
        case "float":  # SELECT shows six digits of what is stored
            return float(f"{value:.6g}")
        case _:
            return value


def _mirrored(folder: Path, table: str, kinds: dict[str, str]) -> list[Image]:
    """The rows that the Delta table holds."""
    rows = DeltaTable(folder / "lake" / DATABASE / table).to_pyarrow_table().to_pylist()
    # Beside the table's columns: where each row's last change is in the log.
    return [
        {name: _delta_value(kinds[name], value) for name, value in row.items() if name != "_seq"}
        for row in rows
    ]


def _selected(server: Server, table: str) -> list[Image]:
    """The rows that the server holds."""
    with server.connect(database=DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _column_types(server: Server, table: str) -> dict[str, str]:
    rows = server.execute(
        "SELECT column_name, data_type FROM information_schema.columns"
        f" WHERE table_schema = '{DATABASE}' AND table_name = '{table}'"
    )
    return {str(name): str(kind) for name, kind in rows}


def _missing(rows: list[Image], others: list[Image]) -> list[Image]:
    """Rows that are not among the others."""
    found = Counter(repr(sorted(row.items())) for row in others)
    left = []
    for row in rows:
        text = repr(sorted(row.items()))
        if found[text]:
            found[text] -= 1
        else:
            left.append(row)
    return left


def compare(console: Console, server: Server, mirror: Mirror, folder: Path) -> bool:
    """Print the summary; whether the mirror's tables and the Delta tables are the server's."""
    title = "what the stream told, what Delta holds, and what the server holds"
    summary = Table(title=title, title_style="bold")
    summary.add_column("table", style="bold")
    for title in ("inserts", "updates", "deletes", "rows replayed", "in Delta", "by SELECT"):
        summary.add_column(title, justify="right")
    summary.add_column("content")
    differences: list[str] = []
    for table in TABLES:
        kinds = _column_types(server, table)
        expected = _selected(server, table)
        found = [
            {name: _payload_value(kinds[name], value) for name, value in row.items()}
            for row in mirror.tables[table].values()
        ]
        delta = _mirrored(folder, table, kinds)
        equal = True
        for where, rows in (("stream", found), ("Delta table", delta)):
            missing, extra = _missing(expected, rows), _missing(rows, expected)
            equal = equal and not missing and not extra
            differences += [f"{table}: not in the {where}: {row}" for row in missing[:3]]
            differences += [f"{table}: only in the {where}: {row}" for row in extra[:3]]
        summary.add_row(
            table,
            *(str(mirror.counts[table, op]) for op in "cud"),
            str(len(found)),
            str(len(delta)),
            str(len(expected)),
            "[green]equal[/]" if equal else "[bold red]DIFFERENT[/]",
        )
    console.print()
    console.print(summary)
    if mirror.error is not None:
        differences.append(str(mirror.error))
    for line in differences:
        console.print(f"[red]{escape(line)}[/]")
    return not differences


# --- Spark


@contextlib.contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """The JVM's stderr goes to a file: it greets with a page of warnings about itself."""
    kept = os.dup(2)
    with file.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def start_spark(folder: Path) -> SparkSession:
    """A small local session that keeps its warnings in `folder`."""
    # Spark's workers would take any `python3` of the PATH, and the package from this checkout in
    # place of the one that is installed with its compiled decoder.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONSAFEPATH"] = "1"
    with _stderr_to(folder / "spark.log"):
        return (
            SparkSession.builder.master("local[2]")
            .appName("shop demo")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.local.dir", str(folder))
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )


def start_queries(
    spark: SparkSession, options: dict[str, Any], mirror: Mirror, folder: Path
) -> list[StreamingQuery]:
    """The stream that the panel at the beginning shows, and one into Delta."""
    changes = spark.readStream.format("mysqlbinlog").options(**options).load()
    delta = DeltaMirror(
        target=f"{folder}/lake/{{database}}/{{table}}",
        checkpoint=str(folder / "lake_checkpoint"),
        options={name: options[name] for name in ("host", "port", "user", "password", "tables")}
        | {"startingOffset": "snapshot"},
    )
    return [
        changes.writeStream.foreachBatch(mirror.batch)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(),
        delta.start(spark),
    ]


_CODE = f"""\
changes = (spark.readStream.format("mysqlbinlog")
           .option("host", "127.0.0.1").option("user", "{READER}").option("password", "…")
           .option("tables", "{DATABASE}.*").load())
changes.writeStream.foreachBatch(show).option("checkpointLocation", "…").start()"""


def _wait_for(query: StreamingQuery, reached: Callable[[Any], bool], what: str) -> None:
    """Wait for a batch whose progress says so; TimeoutError when there is none."""
    deadline = time.monotonic() + _CATCH_UP_TIMEOUT
    while time.monotonic() < deadline:
        # Raises what the query ended with, if it did.
        query.awaitTermination(0.1)  # type: ignore[arg-type] # annotated int, takes fractions
        if query.lastProgress is not None and reached(query.lastProgress):
            return
    raise TimeoutError(f"the stream {what} in {_CATCH_UP_TIMEOUT:.0f} s")


def wait_until_running(query: StreamingQuery) -> None:
    """Wait for batch 0, which is empty: from now on the position is in the checkpoint."""
    _wait_for(query, lambda _: True, "did not start")


def wait_for_position(query: StreamingQuery, end: tuple[str, int]) -> None:
    """Wait until the query has delivered the log up to a place behind one of its changes.

    processAllAvailable would not do: it asks for what the stream knows now, and that need not be
    all that the server has just written.
    """

    def reached(progress: Any) -> bool:
        offset = progress["sources"][0]["endOffset"]
        offset = json.loads(offset) if isinstance(offset, str) else offset
        # The numbers of so young a log's files have one length: text order is log order.
        return offset is not None and (offset["file"], offset["pos"]) >= end

    _wait_for(query, reached, f"did not reach {end[0]}:{end[1]}")


def _stop(queries: list[StreamingQuery]) -> None:
    for query in queries:
        query.stop()


def _pause(queries: list[StreamingQuery], shop: Shop, seconds: float) -> None:
    """Let the streams run; an error of a query or of the shop ends the demo."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for query in queries:
            query.awaitTermination(0.1)  # type: ignore[arg-type] # annotated int, takes fractions
        if shop.error is not None:
            raise shop.error


def run(console: Console, server: Server, folder: Path, seconds: float, seed: int) -> bool:
    """The whole demo on a running server; whether all that the server holds arrived."""
    password = secrets.token_urlsafe(12)
    # The log before the shop's first statement: the stream learns the tables from it.
    start = "{}:{}".format(*server.position())
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in SETUP:
            cursor.execute(statement, (password,) if "%s" in statement else None)
    options = {
        "host": server.host,
        "port": server.port,
        "user": READER,
        "password": password,
        "tables": f"{DATABASE}.*",
        "payload": "json",
        "startingOffset": start,
    }
    spark: SparkSession | None = None
    queries: list[StreamingQuery] = []
    shop = Shop(
        lambda: server.connect(autocommit=False, init_command="SET time_zone = '+00:00'"),
        seed=seed,
        pause=0.35,
    )
    mirror = Mirror(console)
    try:
        with console.status("starting Spark"):
            spark = start_spark(folder)
        console.print(
            Panel(
                Syntax(_CODE, "python", background_color="default", word_wrap=True),
                title=f"Spark {spark.version} reads MySQL {server.version()} ({server.name})",
                subtitle=f"{seconds:g} s of shopping, seed {seed}; Ctrl-C ends it",
            )
        )
        console.print(
            "[green]+[/] inserted  [yellow]~[/] updated  [red]-[/] deleted   #primary key  "
            "what changed   [dim]seq: file:pos/row[/]\n"
        )
        shop.stock()
        queries = start_queries(spark, options, mirror, folder)
        with console.status("starting the queries"):
            for query in queries:
                wait_until_running(query)
        shop.open()
        _pause(queries, shop, seconds * 0.5)
        _stop(queries)
        console.print(Rule("the queries are stopped, the shop goes on", style="magenta"))
        time.sleep(min(2.0, seconds * 0.1))
        console.print(Rule("started again from their checkpoints", style="magenta"))
        queries = start_queries(spark, options, mirror, folder)
        _pause(queries, shop, seconds * 0.4)
        shop.close()
        if shop.error is not None:
            raise shop.error
        for query in queries:
            wait_for_position(query, server.position())
        _stop(queries)
        equal = compare(console, server, mirror, folder)
        console.print(
            f"{shop.transactions} transactions were committed and {mirror.transactions} arrived,"
            f" with {sum(mirror.counts.values())} changes; {shop.rolled_back} were rolled back and"
            f" none of them came; {mirror.repeated} changes came again after the restart and were"
            " left out by their seq."
        )
        return equal and mirror.transactions == shop.transactions
    finally:
        mirror.quiet = True
        shop.close()
        with _stderr_to(folder / "spark.log"):
            with contextlib.suppress(PySparkException):
                _stop(queries)
            if spark is not None:
                spark.stop()
        # A server that is not ours keeps nothing of the shop.
        with contextlib.suppress(MySQLError):
            server.execute(*TEARDOWN)


def _reason(error: Exception) -> str:
    """Our error's one line, out of the pages that Spark wraps around it."""
    cause = cause_of(error)
    return str(error).strip() if cause is None else f"{type(cause).__name__}: {cause}"


def main() -> int:
    parser = argparse.ArgumentParser(description="A shop on MySQL, live in a Spark stream.")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the shop is open")
    parser.add_argument("--seed", type=int, default=1, help="of the customers' chances")
    arguments = parser.parse_args()
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=120)
    # A server that is told to end must take its temporary folder with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="shop-demo-"))
    # py4j reports the call that a Ctrl-C interrupts, with its frames.
    logging.basicConfig(filename=folder / "python.log")
    try:
        server = find_server()
        with console.status(f"starting {server.name}"):
            server.start()
        with server:
            equal = run(console, server, folder, arguments.seconds, arguments.seed)
    except KeyboardInterrupt:
        console.print("\n[magenta]ended early; nothing is left behind[/]")
        return 130
    except NoServerError as error:
        console.print(f"[red]{escape(str(error))}[/]")
        return 1
    except Exception as error:  # noqa: BLE001 (the reason, without our frames)
        console.print(f"[bold red]the demo failed:[/] {escape(_reason(error))}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not equal:
        console.print("[bold red]The stream and the server differ.[/]")
        return 1
    console.print("[bold green]Every row that the server holds arrived, each change once.[/]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
