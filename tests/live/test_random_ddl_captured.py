"""Random DDL in logs of a 5.7.41, CONVERT TO among it, from files and from a server of 5.6.

The server that serves the files is not the one that wrote them: what a statement means, the file's
own version says, also to a stream that begins in the middle of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from helpers.captured_logs import describe
from helpers.decoding import CAPTURED
from helpers.random_ddl import SCENARIOS, check_labelled
from helpers.servers import Server
from helpers.source_runner import Spark, new_reader
from pyspark_mysqlbinlog.connector.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.columns import envelope
from pyspark_mysqlbinlog.connector.options.model import Options

# A restart behind every so many batches of a transaction.
PROCESS_ENDS_AFTER = 9


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_from_files(scenario: str) -> None:
    options = {"path": str(CAPTURED / f"{scenario}.*.binlog"), "payload": "json"}
    reader = MySQLBinlogReader(Options.parse(options), envelope(StringType()))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    check_labelled(describe(scenario), pa.Table.from_batches(batches).to_pylist())


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_streamed_with_restarts(serve_captured: Callable[[str], Server], scenario: str) -> None:
    server = serve_captured(scenario)

    def new_process() -> Spark:
        spark = Spark(
            new_reader(
                server,
                "fx_random_ddl.*",
                startingOffset="earliest",
                maxBytesPerTrigger="1",
            )
        )
        spark.reader.prepareForTriggerAvailableNow()
        return spark

    spark = new_process()
    offset = spark.initial()
    rows: list[dict[str, Any]] = []
    batches = 0
    while (end := spark.latest(offset)) != offset or batches == 0:
        found = spark.rows(offset, end)
        rows += sorted(found, key=lambda row: tuple(row["seq"].values()))
        offset = end
        batches += 1
        if batches % PROCESS_ENDS_AFTER == 0:
            spark.reader.stop()
            spark = new_process()
    spark.reader.stop()
    assert batches > 10 * PROCESS_ENDS_AFTER
    check_labelled(describe(scenario), rows)
