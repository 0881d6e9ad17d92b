"""Log lines of a JVM: they are filtered, and never block the JVM."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog.connector.cli.jvm_log import jvm_lines_to, relevant_lines

# As Spark 4.3 on Java 17 and 25 writes them.
GREETING = """\
NOTE: Picked up JDK_JAVA_OPTIONS: -XX:+UseSerialGC
Picked up JAVA_TOOL_OPTIONS: -Xmx1g
WARNING: Using incubator modules: jdk.incubator.vector
WARNING: package sun.security.action not in java.base
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
Setting default log level to "WARN".
To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).
26/11/23 16:16:13 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform...
Setting Spark log level to "ERROR".
""".splitlines(keepends=True)
TOLD = [
    "26/11/23 16:34:05 WARN SparkConf: The configuration key 'a' has been deprecated\n",
    "2026-11-23 16:34:06,001 INFO pyspark_mysqlbinlog: reading db:3306\n",
    "26/11/23 16:34:06 ERROR MicroBatchExecution: Query [id = 1] terminated with error\n",
]
TRACE = [
    "org.apache.spark.SparkException: Failed when …: Traceback (most recent call last):\n",
    '  File "stream_reader.py", line 103, in initialOffset\n',
    "pyspark_mysqlbinlog.errors.UnknownTableError: there is no table shop.nope\n",
    "\n",
    "\tat org.apache.spark.sql.Some.thing(Some.scala:1)\n",
    "Caused by: java.lang.InterruptedException\n",
]
BEHIND = ["2026-11-23 16:34:07,001 INFO pyspark_mysqlbinlog: another process still runs\n"]


def test_jvm_startup_lines_and_trace_of_a_terminated_query_are_dropped() -> None:
    found = relevant_lines([*GREETING, *TOLD, *TRACE, *BEHIND])
    assert list(found) == [line.rstrip("\n") for line in TOLD + BEHIND]


def test_stack_trace_of_another_jvm_error_is_kept() -> None:
    lines = ["26/11/23 16:34:06 ERROR Utils: Uncaught exception in thread x\n", *TRACE]
    assert list(relevant_lines(lines)) == [line.rstrip("\n") for line in lines]


def _fails(line: str) -> None:
    raise BrokenPipeError(line)


@pytest.mark.parametrize("fails", [False, True])
def test_subprocess_stderr_is_forwarded_and_never_blocks_the_process(*, fails: bool) -> None:
    lines: list[str] = []
    log: Callable[[str], None] = _fails if fails else lines.append
    with jvm_lines_to(log):
        # More than a pipe holds.
        code = "import sys\nfor n in range(30000): print('line', n, file=sys.stderr)"
        process = subprocess.Popen([sys.executable, "-c", code])
    assert process.wait(patience(60)) == 0
    if not fails:
        wait_until(lambda: len(lines) == 30000, "all lines are logged")
        assert lines[-1] == "line 29999"
