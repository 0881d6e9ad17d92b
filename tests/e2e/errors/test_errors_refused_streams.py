"""Rejected streams: Spark shows the package's error, and no later error of its runner."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from e2e.conftest import AVAILABLE_NOW, Fails
from helpers.parity.decoding import CAPTURED
from helpers.servers import Server
from helpers.snapshots.connect_turn import connect_turn
from helpers.streams.spark_session import Reads
from helpers.waiting import patience

LOG = str(CAPTURED / "numbers.001.binlog")
SCRIPT = Path(__file__).parents[2] / "helpers" / "streams" / "refused_stream.py"
REFUSED = "option endingOffset is for batch reads: use spark.read, or remove it for a stream"
TRIGGERS = pytest.mark.parametrize("trigger", [None, AVAILABLE_NOW], ids=["default", "available"])


@TRIGGERS
def test_stream_with_ending_offset_or_invalid_tables_raises_option_error(
    trigger: dict[str, Any] | None, spark: SparkSession, fails: Fails
) -> None:
    stream = spark.readStream.format("mysqlbinlog").options(path=LOG, endingOffset="latest")
    error = fails(stream.load, trigger=trigger)
    assert (error.name, error.message) == ("OptionError", REFUSED)
    assert "UnboundLocalError" not in error.text
    # With a given schema, Spark does not ask the data source before it creates the reader.
    schema = spark.read.format("mysqlbinlog").option("path", LOG).load().schema
    error = fails(stream.option("tables", "`").schema(schema).load, trigger=trigger)
    assert error.name == "OptionError"
    assert error.message.startswith("option tables")


@TRIGGERS
def test_checkpoint_of_a_server_is_rejected_for_files(
    trigger: dict[str, Any] | None, shop: Server, spark: SparkSession, fails: Fails, tmp_path: Path
) -> None:
    reads = Reads(spark, shop)
    query = (
        reads.stream(tables="shop.orders", payload="json")
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "begun"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(patience(300))
    stream = spark.readStream.format("mysqlbinlog").options(
        path=LOG, tables="shop.orders", payload="json", retryTimeout="1s"
    )
    error = fails(stream.load, trigger=trigger, checkpoint=tmp_path / "begun")
    assert error.name in ("BinlogGapError", "BinlogPurgedError")


def test_stream_of_files_with_ending_offset_is_rejected_over_spark_connect(tmp_path: Path) -> None:
    with connect_turn():
        done = subprocess.run(
            [sys.executable, str(SCRIPT), LOG, str(tmp_path)],
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=patience(400),
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"OptionError: {REFUSED}" in done.stdout
    assert "UnboundLocalError" not in done.stdout
