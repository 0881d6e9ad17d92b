"""Code blocks in README and docs: run as written, and compared with SELECT.

Each test extracts the blocks of a document and runs them in order, in one Spark session and on one
database with changes of keys, deletes and truncates. Values that are different here (the server's
address, the lake's folder) are replaced in the text. Blocks that cannot run here are listed in
`NOT_RUN` with the reason. A block that is in neither list fails a test.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyspark
import pytest
from deltalake import DeltaTable
from pyspark.pipelines.flow import AutoCdcFlow, Flow
from pyspark.pipelines.graph_element_registry import (
    GraphElementRegistry,
    graph_element_registration_context,
)
from pyspark.pipelines.output import Output
from pyspark.sql import DataFrame, Row, SparkSession

from helpers.servers import Server
from helpers.snapshots.connect_turn import connect_turn
from helpers.streams.forked_python import REAL_PYTHON
from helpers.tools.documents_shop import ORDERS, ROOT, Shop, Writing, blocks, open_shop
from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog import DeltaMirror

_CLUSTER = "how-to/deploy-on-a-cluster.md"
_CONNECT = "how-to/spark-connect.md"
_HOURLY = "how-to/run-periodically.md"
_MASKS = "how-to/mask-and-filter.md"
_MERGE = "how-to/foreach-batch-merge.md"
_MYSQL = "how-to/prepare-mysql.md"
_PIPELINES = "how-to/declarative-pipelines.md"
_SNAPSHOT = "how-to/initial-snapshot.md"

# Document and a text that only this block contains -> why it is not run.
NOT_RUN = {
    (_CLUSTER, "spark://"): "needs a cluster that jobs are submitted to",
    (_CLUSTER, "venv-pack"): "packs an environment and submits it to YARN or Kubernetes",
    (_CONNECT, "sc://"): "needs a server of Spark Connect; test_sessions.py runs one",
    (_PIPELINES, "@dp.table\n"): "needs the command spark-pipelines",
    (_PIPELINES, "spark-pipelines run"): "needs a project folder; runs until it is stopped",
    (_MYSQL, "variables_by_thread"): "needs MySQL 5.7, and the server can be 5.6",
    ("reference/errors.md", "cause_of"): "test_sessions.py provokes its errors",
    (_HOURLY, "flock"): "test_ingest.py runs the command with --available-now",
}


def runnable(name: str) -> list[tuple[str, str]]:
    left_out = [text for document, text in NOT_RUN if document == name]
    return [block for block in blocks(name) if not any(text in block[1] for text in left_out)]


RUN = {
    "README.md": ["sql", "python"],
    _PIPELINES: ["python"],
    "how-to/delta-mirror.md": ["python"],
    _MASKS: ["python", "python", "python"],
    _MERGE: ["python", "python"],
    _SNAPSHOT: ["python", "sql", "sql"],
    "how-to/one-sink-per-table.md": ["python"],
    _MYSQL: ["sql"] * 9,
    _HOURLY: ["python"],
    "how-to/time-travel-and-scd2.md": ["python", "python", "python"],
    "how-to/tune.md": ["python"],
    "how-to/write-to-files.md": ["python"],
    "reference/output-schema.md": ["python"],
    "reference/type-mapping.md": ["python"],
    "tutorial/first-stream.md": ["python"],
    "tutorial/mirror-to-delta.md": ["python"],
}


def test_every_documented_code_block_is_run_or_listed_as_not_run() -> None:
    docs = ROOT / "docs"
    documents = ["README.md", *(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))]
    found = {name: [language for language, _ in runnable(name)] for name in documents}
    assert {name: languages for name, languages in found.items() if languages} == RUN
    for name, text in NOT_RUN:
        assert any(text in code for _, code in blocks(name)), f"{name} has no block with {text}"


@pytest.fixture
def shop(spark: SparkSession, live_server: Server, tmp_path: Path) -> Iterator[Shop]:
    with open_shop(spark, live_server, tmp_path) as shop:
        yield shop


@pytest.fixture
def any_shop(spark: SparkSession, any_server: Server, tmp_path: Path) -> Iterator[Shop]:
    with open_shop(spark, any_server, tmp_path) as shop:
        yield shop


def _delta(folder: Path) -> list[tuple[Any, ...]]:
    rows = DeltaTable(folder / "lake" / "orders").to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["status"], row["total"]) for row in rows)


def _replayed(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Return the rows that the changes leave in an empty table."""
    table: dict[int, tuple[Any, ...]] = {}
    for row in sorted(rows, key=lambda row: tuple(row["seq"])):
        if row["op"] == "t":
            table.clear()
        if row["before"] is not None:
            del table[json.loads(row["before"])["id"]]
        if row["after"] is not None:
            image = json.loads(row["after"], parse_float=Decimal)
            table[image["id"]] = (image["id"], image["status"], image["total"])
    return sorted(table.values())


def test_readme_stream_reaches_the_end_of_the_binlog(shop: Shop) -> None:
    """The stream uses the account that `open_shop` creates from README."""
    ((_, stream),) = [block for block in blocks("README.md") if block[0] == "python"]
    shop.python(stream)
    query = shop.names["query"]
    wait_until(lambda: query.lastProgress, "batch 0 is done", 300, every=0.1)
    shop.write(0)
    shop.wait_for_end(query)


@pytest.fixture
def tutorial(shop: Shop) -> Iterator[Shop]:
    """Yield the shop, with the tutorials' database."""
    shop.server.execute(
        "DROP DATABASE IF EXISTS tutorial",
        "CREATE DATABASE tutorial CHARACTER SET utf8mb4",
        "CREATE TABLE tutorial.orders (id INT AUTO_INCREMENT PRIMARY KEY,"
        " status VARCHAR(20) NOT NULL, total DECIMAL(10,2) NOT NULL)",
        "CREATE TABLE tutorial.customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60))",
    )
    yield shop
    shop.server.execute("DROP DATABASE tutorial")


_PLACED = "INSERT INTO orders (status, total) VALUES ('placed', 83.20), ('paid', 12.00)"


def test_first_stream_tutorial_shows_the_inserted_rows(tutorial: Shop) -> None:
    ((_, stream),) = runnable("tutorial/first-stream.md")
    tutorial.python(stream)
    query = tutorial.names["query"]
    wait_until(lambda: query.lastProgress, "batch 0 is done", 300, every=0.1)
    tutorial.server.execute(_PLACED, database="tutorial")

    def shown() -> int:
        assert query.exception() is None, query.exception()
        return sum(progress["numInputRows"] for progress in query.recentProgress)

    wait_until(lambda: shown() == 2, "both rows are shown", 300, every=0.1)


def test_mirror_tutorial_reports_equal_tables(
    tutorial: Shop, capfd: pytest.CaptureFixture[str]
) -> None:
    ((_, compare),) = runnable("tutorial/mirror-to-delta.md")
    customers = "INSERT INTO customers (name) VALUES ('Ada'), ('Grace')"
    tutorial.server.execute(_PLACED, customers, database="tutorial")
    mirror = DeltaMirror(
        f"{tutorial.folder}/tutorial_lake/{{database}}/{{table}}",
        f"{tutorial.folder}/checkpoints/mirror",
        tutorial.server.options(tables="tutorial.*"),
    )
    for _ in range(2):
        mirror.start(tutorial.spark, availableNow=True).awaitTermination()
    tutorial.python(compare)
    assert capfd.readouterr().out.count("2 rows: equal") == 2


def test_reference_example_finds_data_losing_ddl_and_equals_select(shop: Shop) -> None:
    ((_, losing),) = runnable("reference/output-schema.md")
    ((_, current),) = runnable("reference/type-mapping.md")
    start = "{}:{}".format(*shop.server.position())
    shop.write(0)
    shop.truncate()
    shop.write(1)
    shop.server.execute(
        "CREATE TABLE gone (id INT PRIMARY KEY)",
        "ALTER TABLE gone ADD v INT",
        "DROP TABLE gone",
        database="shop",
    )
    shop.write(300)
    options = shop.server.options(tables="shop.*", payload="json", startingOffset=start)
    operations = "insert,update,delete,truncate,ddl"
    read = shop.spark.read.format("mysqlbinlog").options(**options, operations=operations)
    shop.names["changes"] = read.load()
    shop.python(losing)
    assert [row["table"] for row in shop.names["losing"].collect()] == ["gone"]
    shop.python(current)
    rows = [tuple(row) for row in shop.names["current"].collect()]
    assert sorted(rows) == shop.selected()


def test_tuning_example_prints_a_positive_duration(
    shop: Shop, capfd: pytest.CaptureFixture[str]
) -> None:
    ((_, measure),) = runnable("how-to/tune.md")
    shop.write(0)
    shop.python(measure)
    assert float(capfd.readouterr().out.splitlines()[-1]) > 0


def test_mask_and_filter_example_masks_values_and_drops_rows(shop: Shop) -> None:
    mask, lookup, condition = (code for _, code in runnable(_MASKS))
    secret = shop.folder / "mask"
    secret.write_text("0123456789abcdef", encoding="utf-8")
    shop.names["secret"] = "0123456789abcdef"
    shop.server.execute(
        "CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(60), phone VARCHAR(20),"
        " country CHAR(2), deleted BOOL NOT NULL)",
        database="shop",
    )
    masked = _customers(shop, "masked", mask.replace("/run/secrets/mask", str(secret)))
    filtered = _customers(shop, "filtered", condition)
    shop.python(lookup.replace("hmac.new(", "ann = hmac.new("))
    assert masked[1]["email"] == shop.names["ann"]
    phones = {id: image["phone"] for id, image in masked.items()}
    assert phones == {1: "***1234", 2: None, 3: "***"}
    assert list(filtered) == [1]


def _customers(shop: Shop, name: str, code: str) -> dict[int, dict[str, Any]]:
    """Return the inserted customers that a block's stream delivers, by their keys."""
    shop.python(code)
    query = shop.names["customers"].writeStream.format("memory").queryName(name).start()
    wait_until(lambda: query.lastProgress, "batch 0 is done", 300, every=0.1)
    shop.truncate()
    shop.server.execute(
        "DELETE FROM customers",
        "INSERT INTO customers VALUES (1, 'ann@example.org', '+49 30 1234', 'DE', 0),"
        " (2, 'bob@example.org', NULL, 'AT', 0), (3, NULL, '12', 'DE', 1)",
        database="shop",
    )
    shop.wait_for_end(query)
    rows = shop.spark.table(name).where("op = 'c' AND table = 'customers'").collect()
    return {image["id"]: image for image in (json.loads(row.after) for row in rows)}


def test_merge_example_equals_select_also_when_a_batch_is_replayed(shop: Shop) -> None:
    define, follow = (code for _, code in runnable(_MERGE))
    shop.python(define)
    shop.write(0)
    # Earlier parts of the binlog may contain a table of this name with other columns.
    start = '"{}:{}"'.format(*shop.begin)
    shop.python(follow.replace('"earliest"', start))
    query = shop.names["query"]
    wait_until(lambda: query.lastProgress, "batch 0 is done", 300, every=0.1)
    shop.write(200)
    shop.truncate()
    shop.write(0)
    shop.write(400)
    shop.wait_for_end(query)
    assert _delta(shop.folder) == shop.selected()
    # Spark replays a batch that was not committed.
    options = shop.server.options(tables="shop.orders", startingOffset=start.strip('"'))
    again = shop.spark.read.format("mysqlbinlog").options(**options).load()
    for _ in range(2):
        shop.names["upsert"](again, 7)
        assert _delta(shop.folder) == shop.selected()


@pytest.mark.parametrize("grant", [0, 1])
def test_initial_snapshot_example_equals_select_with_each_grant(shop: Shop, grant: int) -> None:
    define = runnable(_MERGE)[0][1]
    load, *grants = (code for _, code in runnable(_SNAPSHOT))
    # The account already has this privilege.
    shop.server.execute("REVOKE PROCESS ON *.* FROM 'spark'@'%'")
    shop.sql(grants[grant])
    shop.python(define)
    shop.write(200)
    with Writing(shop):
        shop.python(load)
        query = shop.names["query"]
        wait_until(lambda: query.lastProgress, "batch 0 is done", 300, every=0.1)
    shop.wait_for_end(query)
    assert _delta(shop.folder) == shop.selected()


def test_delta_mirror_example_equals_select(shop: Shop) -> None:
    ((_, mirror),) = runnable("how-to/delta-mirror.md")
    shop.sql(runnable(_SNAPSHOT)[1][1])
    shop.write(200)
    shop.python(mirror)
    shop.write(0)
    shop.truncate()
    shop.write(300)
    query = shop.names["query"]
    shop.wait_for_end(query)
    rows = DeltaTable(shop.folder / "lake" / "shop" / "orders").to_pyarrow_table().to_pylist()
    found = sorted((row["id"], row["status"], row["total"]) for row in rows)
    assert found == shop.selected()


# The statements before each moment.
_MOMENTS = [
    ["TRUNCATE TABLE orders", "INSERT INTO orders VALUES (1, 'ñ漢', 1.5), (2, NULL, NULL)"],
    ["UPDATE orders SET id = 3 WHERE id = 1", "INSERT INTO orders VALUES (1, 'new', 2)"],
    ["DELETE FROM orders WHERE id = 2", "UPDATE orders SET total = 9 WHERE id = 3"],
    [
        "/* a client */ ALTER TABLE orders ADD note INT",
        "-- a note\nALTER TABLE orders DROP note",
        "INSERT INTO orders (id) VALUES (4)",
    ],
    [
        "DROP TABLE orders",
        f"CREATE TABLE orders ({ORDERS})",
        "INSERT INTO orders VALUES (5, 'table', 5)",
    ],
    [
        "/*!40000 DROP DATABASE shop */",
        "CREATE DATABASE shop CHARACTER SET utf8mb4",
        f"CREATE TABLE shop.orders ({ORDERS})",
        "INSERT INTO shop.orders VALUES (6, 'database', 6)",
    ],
]
# On MariaDB: statements that replace the table; an INSERT follows each.
_REPLACEMENTS = [
    f"CREATE OR REPLACE TABLE orders ({ORDERS})",
    f"/* a client */ create or\nreplace table orders ({ORDERS})",
    f"SET STATEMENT max_statement_time = 600 FOR CREATE OR REPLACE TABLE orders ({ORDERS})",
    f"CREATE OR REPLACE TABLE orders ({ORDERS}) SELECT 7 AS id, 'selected' AS status",
]


def test_time_travel_and_scd2_example_equals_select_at_each_moment(any_shop: Shop) -> None:
    shop, moments = any_shop, _MOMENTS
    if shop.server.is_mariadb:
        moments = [
            *_MOMENTS[:-1],
            *(
                [replacement, f"INSERT INTO orders (id) VALUES ({10 + number})"]
                for number, replacement in enumerate(_REPLACEMENTS)
            ),
            _MOMENTS[-1],
        ]
    mirror, travel, dimension = (code for _, code in runnable("how-to/time-travel-and-scd2.md"))
    shop.sql(runnable(_SNAPSHOT)[1][1])
    shop.write(200)
    shop.python(mirror)
    seconds = int(shop.server.execute("SELECT UNIX_TIMESTAMP()")[0][0])
    selected: list[tuple[datetime, list[Any]]] = []
    for number, statements in enumerate(moments):
        # A separate time for each, an hour apart.
        time = seconds + 3600 * (number + 1)
        shop.server.execute(f"SET timestamp = {time}", *statements, database="shop")
        rows = shop.server.execute("SELECT id, status, total FROM orders", database="shop")
        selected.append((datetime.fromtimestamp(time + 1, UTC), sorted(rows)))
    shop.wait_for_last_change(shop.names["query"])
    shop.python(travel)
    shop.python(dimension)
    versions = shop.names["orders_versions"]().cache()
    for moment, expected in selected:
        assert sorted(map(tuple, shop.names["orders_at"](moment).collect())) == expected
        valid = versions.where(versions.valid_from <= moment)
        valid = valid.where(versions.valid_to.isNull() | (versions.valid_to > moment))
        assert sorted(tuple(row)[:3] for row in valid.collect()) == expected
    now = versions.where("valid_to IS NULL").collect()
    assert sorted(tuple(row)[:3] for row in now) == expected
    held = DeltaTable(shop.folder / "lake" / "shop" / "orders").to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["status"], row["total"]) for row in held) == expected


def _of_84(query: str) -> str:
    """Return a query as 8.4 and later accept it, without the statement that they removed."""
    return query.replace("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS")


def test_mysql_preparation_grants_equal_readme_and_queries_run(shop: Shop) -> None:
    grants, *queries = (code for _, code in runnable(_MYSQL))
    assert grants == next(code for language, code in blocks("README.md") if language == "sql")
    for query in queries:
        shop.sql(_of_84(query) if shop.server.is_mysql9() else query)


def test_file_sink_example_writes_changes_that_replay_to_select(shop: Shop) -> None:
    shop.python(runnable("how-to/write-to-files.md")[0][1])
    query = shop.names["query"]
    wait_until(lambda: query.lastProgress, "batch 0 is done", 300, every=0.1)
    shop.write(0)
    shop.truncate()
    shop.write(1)
    shop.wait_for_end(query)
    rows = shop.spark.read.parquet(f"{shop.folder}/lake/changes_as_parquet").collect()
    assert _replayed(rows) == shop.selected()


class _Registry(GraphElementRegistry):
    """A registry of the views and flows that a pipeline file defines."""

    def __init__(self) -> None:
        self.views: dict[str, Callable[[], DataFrame]] = {}
        self.auto_cdc: list[AutoCdcFlow] = []

    def register_output(self, output: Output) -> None:
        pass

    def register_flow(self, flow: Flow) -> None:
        self.views[flow.name] = flow.func

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        self.auto_cdc.append(flow)

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        raise NotImplementedError


def test_last_rows_of_the_auto_cdc_example_equal_select(shop: Shop) -> None:
    """The flow keeps the last row of each key by `sequence_by`, without deletes.

    The connectors of these sessions do not support the flow; another test has Spark check its
    definition.
    """
    code = runnable(_PIPELINES)[0][1]
    shop.sql(runnable(_SNAPSHOT)[1][1])
    registry = _Registry()
    with graph_element_registration_context(registry):
        shop.python(code)
    (flow,) = registry.auto_cdc
    shop.write(200)
    states: list[Row] = []
    query = (
        registry.views[flow.source]()
        .writeStream.foreachBatch(lambda batch, _: states.extend(batch.collect()))
        .option("checkpointLocation", str(shop.folder / "auto_cdc"))
        .start()
    )
    wait_until(lambda: bool(states), "rows are loaded", 100, every=0.1)
    shop.write(0)
    shop.server.execute("DELETE FROM orders WHERE id % 5 = 0", database="shop")
    shop.write(400)
    shop.wait_for_end(query)
    last: dict[int, Row] = {}
    for row in sorted(
        states, key=lambda row: (tuple(row["place"]["seq"]), row["place"]["is_live"])
    ):
        last[row["id"]] = row
    kept = [(row["id"], row["status"], row["total"]) for row in last.values() if row.place.is_live]
    assert sorted(kept) == shop.selected()


def test_spark_accepts_the_auto_cdc_pipeline_in_a_dry_run(shop: Shop) -> None:
    project = shop.folder / "project"
    project.mkdir()
    code = shop.as_here(runnable(_PIPELINES)[0][1])
    (project / "orders.py").write_text(code, encoding="utf-8")
    spec = {
        "name": "shop",
        "storage": (project / "storage").as_uri(),
        "libraries": [{"glob": {"include": "orders.py"}}],
    }
    # JSON is valid YAML.
    (project / "spark-pipeline.yml").write_text(json.dumps(spec), encoding="utf-8")
    home = Path(pyspark.__file__).parent
    # The command starts a Spark Connect server.
    with connect_turn():
        done = subprocess.run(
            [home / "bin" / "spark-pipelines", "dry-run", "--spec", "spark-pipeline.yml"],
            cwd=project,
            env=os.environ | REAL_PYTHON | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=patience(600),
            check=False,
        )
    assert "Run is COMPLETED" in done.stdout + done.stderr, done.stdout + done.stderr


def test_one_sink_per_table_example_writes_each_change_once(shop: Shop) -> None:
    route = runnable("how-to/one-sink-per-table.md")[0][1]
    shop.server.execute(f"CREATE TABLE `old orders` ({ORDERS})", database="shop")
    shop.python(route)
    wait_until(lambda: shop.names["query"].lastProgress, "batch 0 is done", 300, every=0.1)
    shop.write(0)
    shop.server.execute(
        "INSERT INTO `old orders` SELECT * FROM orders",
        "UPDATE `old orders` SET id = id + 1000 WHERE id < 5",
        "DELETE FROM `old orders` WHERE id > 1002",
        database="shop",
    )
    shop.truncate()
    shop.write(200)
    shop.wait_for_end(shop.names["query"])
    commits = shop.folder / "lake" / "_checkpoints" / "routed" / "commits"
    max(commits.glob("[0-9]*"), key=lambda path: int(path.name)).unlink()
    shop.python(route)
    shop.truncate()
    shop.write(400)
    shop.wait_for_end(shop.names["query"])
    for table in ("orders", "old orders"):
        rows = shop.spark.read.parquet(f"{shop.folder}/lake/routed/shop/{table}").collect()
        assert len(rows) == len({row["seq"] for row in rows})
        selected = shop.server.execute(f"SELECT id, status, total FROM `{table}`", database="shop")
        assert selected
        assert _replayed(rows) == sorted(selected)


def test_periodic_job_example_equals_select_after_each_run(shop: Shop) -> None:
    job = runnable(_HOURLY)[0][1]
    shop.sql(runnable(_SNAPSHOT)[1][1])
    shop.write(200)
    for hour in range(3):
        shop.python(job)
        rows = DeltaTable(shop.folder / "lake" / "shop" / "orders").to_pyarrow_table().to_pylist()
        found = sorted((row["id"], row["status"], row["total"]) for row in rows)
        assert found == shop.selected()
        shop.truncate()
        shop.write(hour)
