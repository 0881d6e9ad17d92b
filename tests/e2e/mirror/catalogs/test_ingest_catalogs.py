"""``pyspark-mysqlbinlog ingest`` into a Hive metastore, and into a catalog of another name.

The metastore is embedded (Derby), and is kept on disk between the processes.
"""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest
from deltalake import DeltaTable

from e2e.tools.test_ingest import COMMAND, run
from helpers.mirrors.mirror_process import rows_of_server
from helpers.servers import Server
from helpers.streams.spark_session import DELTA_JARS, DELTA_SETTINGS
from helpers.waiting import patience, wait_until

_SOURCE = Path(__file__).parent / "java" / "OtherCatalog.java"
_TABLES = ("orders", "Lines", "a-b", "events")


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the paths of Delta's jars and of one with the catalog `OtherCatalog`."""
    if not DELTA_JARS:
        pytest.skip("MYSQLBINLOG_DELTA_JARS names no jars of Delta's (delta-spark, delta-storage)")
    if shutil.which("javac") is None:
        pytest.skip("there is no Java compiler (javac)")
    folder = tmp_path_factory.mktemp("catalog")
    spark_jars = Path(pyspark.__file__).parent / "jars"
    compile_it = ["javac", "-nowarn", "-d", str(folder), "-cp", f"{spark_jars}/*", str(_SOURCE)]
    subprocess.run(compile_it, check=True)
    with zipfile.ZipFile(folder / "catalog.jar", "w") as jar:
        jar.write(folder / "OtherCatalog.class", "OtherCatalog.class")
    return f"{DELTA_JARS},{folder}/catalog.jar"


def _arguments(server: Server, database: str, folder: Path, catalog: str, jars: str) -> list[str]:
    password = folder / "password"
    password.write_text(server.password, encoding="utf-8")
    settings = DELTA_SETTINGS | {
        "spark.master": "local[2]",
        "spark.jars": jars,
        "spark.sql.catalog.lake": "OtherCatalog",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={folder}/metastore;create=true"
        ),
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={folder}/derby.log",
    }
    return [
        *COMMAND,
        *("--host", server.host, "--port", str(server.port), "--user", server.user),
        *("--password-file", str(password), "--tables", f"{database}.*"),
        *("--engine", "spark", "--target", f"{catalog}.{{database}}.{{table}}"),
        *("--checkpoint", str(folder / "checkpoint")),
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
    ]


def _rows(folder: Path, schema: str, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of a managed table from the metastore's warehouse."""
    rows = DeltaTable(folder / "warehouse" / f"{schema}.db" / table).to_pyarrow_table()
    return sorted((tuple(row.values()) for row in rows.drop(["_seq"]).to_pylist()), key=repr)


def _assert_equal(server: Server, database: str, folder: Path, schema: str) -> None:
    for table in _TABLES:
        name = table.lower().replace("-", "_x002d_")
        assert _rows(folder, schema, name) == rows_of_server(server, database, table), table


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("catalog", ["spark_catalog", "lake"])
def test_tables_of_a_catalog_equal_the_servers_after_a_kill(
    live_server: Server, database: str, tmp_path: Path, jars: str, catalog: str
) -> None:
    live_server.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(40)) CHARSET utf8mb4",
        "CREATE TABLE `Lines` (id INT PRIMARY KEY)",
        "CREATE TABLE `a-b` (id INT PRIMARY KEY)",
        "CREATE TABLE events (n INT, v VARCHAR(9))",
        "INSERT INTO orders VALUES (1, 'ñ漢'), (2, NULL)",
        "INSERT INTO `Lines` VALUES (1)",
        "INSERT INTO `a-b` VALUES (1)",
        "INSERT INTO events VALUES (1, 'x'), (1, 'x')",
        database=database,
    )
    schema = database if catalog == "spark_catalog" else f"{catalog}_{database}"
    command = _arguments(live_server, database, tmp_path, catalog, jars)
    once = run([*command, "--available-now"])
    assert once.returncode == 0, once.stderr
    _assert_equal(live_server, database, tmp_path, schema)

    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            live_server.execute(
                "UPDATE orders SET id = 3 WHERE id = 1",
                "DELETE FROM events LIMIT 1",
                database=database,
            )
            wait_until(
                lambda: process.poll() is not None or " rows in" in log.read_text(), "a batch", 300
            )
            assert process.poll() is None, log.read_text()[-3000:]
            live_server.execute("INSERT INTO `a-b` VALUES (2), (3)", database=database)
        finally:
            process.kill()
            process.wait(patience(60))
    live_server.execute(
        "ALTER TABLE orders CHANGE v w VARCHAR(50)",
        "INSERT INTO orders VALUES (4, 'd')",
        "DELETE FROM `Lines`",
        database=database,
    )
    again = run([*command, "--available-now"])
    assert again.returncode == 0, again.stderr
    _assert_equal(live_server, database, tmp_path, schema)


@pytest.mark.timeout(1800)
def test_a_catalog_that_denies_a_table_ends_the_query_and_stops_no_table(
    live_server: Server, database: str, tmp_path: Path, jars: str
) -> None:
    live_server.execute("CREATE TABLE orders (id INT PRIMARY KEY)", database=database)
    command = [*_arguments(live_server, database, tmp_path, "lake", jars), "--available-now"]
    for number, denied in enumerate(("create", "write")):
        live_server.execute(f"INSERT INTO orders VALUES ({number})", database=database)
        failed = run([*command, "--conf", f"spark.sql.catalog.lake.denied={denied}"])
        assert failed.returncode != 0
        assert "the catalog of the Delta tables failed: " in failed.stderr, failed.stderr[-3000:]
        assert f"No privilege '{denied}' found" in failed.stderr
        allowed = run(command)
        assert allowed.returncode == 0, allowed.stderr[-3000:]
        assert "stopped" not in allowed.stderr
        rows = _rows(tmp_path, f"lake_{database}", "orders")
        assert rows == rows_of_server(live_server, database, "orders")
