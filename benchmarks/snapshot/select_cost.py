"""What the rows of a load cost without Spark: ``python -m benchmarks.snapshot.select_cost``.

The table of the benchmark, read from a server over one connection: its bytes alone, made into row
images, and decoded to Arrow; in addition pymysql's SSCursor to pyarrow, and connectorx where it is
installed. Each read is a child process of its own, all of them interleaved; the best of the rounds
counts. Seconds are those on the clock, and those of the processor in the reader and in the server:
on a busy machine only the last two mean something.

With --url an existing server is used; --short only shows that everything runs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pymysql
from pymysql.cursors import SSCursor
from pyspark.sql.types import StringType, VariantType

from benchmarks.workload.orders import COLUMNS, CREATE, DATABASE, TABLE, Orders
from helpers.servers import Server
from pyspark_mysqlbinlog.checkpoints.position import BEGINNING
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges.reader import SchemasAt, payload_factory
from pyspark_mysqlbinlog.connector.schemas.struct_schema import struct_of
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schemas
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema, output_schema
from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.kernel.decoder import KernelDecoder
from pyspark_mysqlbinlog.decoder.kernel.result_rows import row_images
from pyspark_mysqlbinlog.decoder.result_rows.columns import ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.events import event_blocks
from pyspark_mysqlbinlog.decoder.result_rows.read import read_rows
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

_BATCH = 10_000
_END_BYTES = 9


def _client(url: str, payload: str = "struct") -> tuple[ReplicaClient, Any]:
    """A connection, and the options that it was made by."""
    at = urlsplit(url)
    options = parse_options(
        {
            "host": at.hostname or "127.0.0.1",
            "port": str(at.port or 3306),
            "user": at.username or "root",
            "password": at.password or "",
            "tables": f"{DATABASE}.{TABLE}",
            "payload": payload,
            "sslMode": "DISABLED",
        }
    )
    return ReplicaClient.connect(options.server_settings()), options


def _plan(client: ReplicaClient, payload: str = "struct") -> ResultPlan:
    schema = read_table_schemas(client, lambda *name: name == (DATABASE, TABLE))[0]
    client.begin_raw_rows()
    return ResultPlan.make(schema, typed_json=payload == "variant")


def read_bytes(url: str, rows: int) -> int:
    """The bytes of the result, and nothing else."""
    client, _ = _client(url)
    with client:
        plan = _plan(client)
        result = client.prepared(f"SELECT {plan.select_list} FROM {plan.source}")
        last = b""
        while not _is_end(last):
            if not result.fill():
                raise EOFError("the server ended the connection inside the result")
            view = result.view()
            last = (last + bytes(view[-_END_BYTES:]))[-_END_BYTES:]
            result.consume(len(view))
    return rows


def _is_end(last: bytes) -> bool:
    """Whether the last bytes are an EOF packet: 5 bytes after a header of 4."""
    return len(last) == _END_BYTES and last[:3] == b"\x05\x00\x00" and last[4] == 0xFE


def read_images(url: str, rows: int) -> int:
    """Row images, by the implementation of this process."""
    client, _ = _client(url)
    with client:
        plan = _plan(client)
        size = sum(map(len, read_rows(client, plan, make=row_images)))
    assert size > rows * len(plan.columns)
    return rows


def read_arrow(url: str, _: int, *, payload: str) -> int:
    """Arrow batches, as an executor makes them."""
    client, options = _client(url, payload)
    with client:
        plan = _plan(client, payload)
        kinds = {"json": StringType(), "variant": VariantType()}
        kind = kinds.get(payload) or struct_of(
            plan.schema, options.struct_options, options.column_filter(case_sensitive=True)
        )
        decoder = Decoder(
            SchemasAt(SchemaHistory().with_table(BEGINNING, plan.schema), lambda _: 1),
            arrow_schema(output_schema(kind, rescued=payload == "struct")),
            1,
            frozenset({"insert"}),
            file_ordinal=lambda _: 1,
            payload=payload_factory(options, case_sensitive=True),
        )
        images = read_rows(client, plan, make=row_images)
        blocks = event_blocks(plan, images, file="b.000001", pos=4, timestamp=7, server_id=1)
        return sum(batch.num_rows for batch in KernelDecoder(decoder).decode(blocks))


def read_pymysql(url: str, rows: int) -> int:
    """SSCursor, some rows at a time to pyarrow."""
    found = 0
    with _connect(url) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute(f"SELECT * FROM {DATABASE}.{TABLE} LIMIT {rows}")
        while some := list(islice(cursor, _BATCH)):
            columns = [pa.array(column) for column in zip(*some, strict=True)]
            names = [str(at) for at in range(COLUMNS)]
            found += pa.RecordBatch.from_arrays(columns, names).num_rows
    return found


def read_connectorx(url: str, rows: int, *, connections: int = 1) -> int:
    """To Arrow; ENUM and SET as text. Over more connections it is by ranges of the key."""
    # A peer that takes part where it is installed.
    import connectorx

    query = (
        "SELECT id, customer, CONCAT(status) AS status, amount, quantity, sku, ordered, changed,"
        f" weight, priority, note, CONCAT(tags) AS tags FROM {DATABASE}.{TABLE}"
    )
    queries = [f"{query} LIMIT {rows}"]
    if connections > 1:
        # A derived table, as its own ranges make one, would be written out by 5.6 first.
        cuts = [rows * at // connections for at in range(connections)] + [rows + 1]
        queries = [f"{query} WHERE id >= {a} AND id < {b}" for a, b in pairwise(cuts)]
    table = connectorx.read_sql(url, queries, return_type="arrow", protocol="binary")
    return int(table.num_rows)


READS: dict[str, Callable[[str, int], int]] = {
    "bytes": read_bytes,
    "images": read_images,
    "struct": partial(read_arrow, payload="struct"),
    "json": partial(read_arrow, payload="json"),
    "variant": partial(read_arrow, payload="variant"),
    "pymysql": read_pymysql,
    "connectorx": read_connectorx,
    "connectorx, 4 connections": partial(read_connectorx, connections=4),
}


def _connect(url: str) -> pymysql.Connection[Any]:
    at = urlsplit(url)
    return pymysql.connect(
        host=at.hostname or "127.0.0.1",
        port=at.port or 3306,
        user=at.username or "root",
        password=at.password or "",
        charset="utf8mb4",
        autocommit=True,
        ssl_disabled=True,
    )


def _write(url: str, rows: int) -> None:
    """The table, unless it is there with so many rows."""
    with _connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        cursor.execute(CREATE.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
        cursor.execute(f"SELECT COUNT(*) FROM {DATABASE}.{TABLE}")
        (found,) = cursor.fetchone() or (0,)
        if found == rows:
            return
        cursor.execute(f"TRUNCATE {DATABASE}.{TABLE}")
        orders = Orders()
        for first in range(0, rows, 2000):
            values = ",".join(orders.values(key) for key in range(first, min(first + 2000, rows)))
            cursor.execute(f"INSERT INTO {DATABASE}.{TABLE} VALUES {values}")


def _server_pid(url: str) -> int | None:
    """None for a server on another machine."""
    with _connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@pid_file, @@datadir")
        file, folder = map(str, cursor.fetchone() or ("", ""))
    try:
        return int((Path(folder) / file).read_text())
    except OSError:
        return None


def _server_seconds(pid: int | None) -> float:
    """Of the processor, which the server has taken."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _measured(name: str, url: str, rows: int) -> dict[str, float]:
    pid = _server_pid(url)
    server, begin = _server_seconds(pid), time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF)
    found = READS[name](url, rows)
    after = resource.getrusage(resource.RUSAGE_SELF)
    wall = time.perf_counter() - begin
    if found != rows:
        raise SystemExit(f"{name}: expected {rows} rows, found {found}")
    return {
        "wall": wall,
        "reader": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "server": _server_seconds(pid) - server,
        "memory": after.ru_maxrss / 1024,
    }


def read_apart(name: str, url: str, rows: int) -> dict[str, float]:
    """One read in a process of its own: seconds `wall`, `reader`, `server`, and MB of `memory`."""
    command = [
        sys.executable,
        "-m",
        __spec__.name,
        "--read",
        name,
        "--url",
        url,
        "--rows",
        str(rows),
    ]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


@contextmanager
def _server(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    from benchmarks.workload.workload import running_server

    with running_server() as server:
        yield url_of(server)


def url_of(server: Server) -> str:
    return f"mysql://{server.user}:{server.password}@{server.host}:{server.port}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--url", help="mysql://user:password@host:port; default: a new server")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="2,000 rows, once")
    parser.add_argument("--read", choices=list(READS), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    arguments = _arguments()
    rows, rounds = (2000, 1) if arguments.short else (arguments.rows, arguments.rounds)
    if arguments.read:
        sys.stdout.write(json.dumps(_measured(arguments.read, arguments.url, rows)))
        return
    with _server(arguments.url) as url:
        _write(url, rows)
        names = [
            name for name in READS if not name.startswith("connectorx") or find_spec("connectorx")
        ]
        best: dict[str, dict[str, float]] = {}
        for _ in range(rounds):
            for name in names:
                found = read_apart(name, url, rows)
                least = best.setdefault(name, found)
                best[name] = {key: min(found[key], least[key]) for key in found}
    write = sys.stdout.write
    write(f"{rows:,} rows; the best of {rounds} rounds\n")
    write(f"{'':26}{'seconds':>9}{'M rows/s':>10}{'reader cpu':>12}{'server cpu':>12}{'MB':>7}\n")
    for name, each in best.items():
        rate = rows / each["wall"] / 1e6
        write(f"{name:26}{each['wall']:9.2f}{rate:10.3f}{each['reader']:12.2f}")
        write(f"{each['server']:12.2f}{each['memory']:7.0f}\n")


if __name__ == "__main__":
    main()
