"""Runs a mirror in its own Spark session, until its query ends or a signal arrives."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping
from threading import Event
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from pyspark_mysqlbinlog.connector.cli.jvm_log import jvm_lines_to

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pyspark_mysqlbinlog.connector.cli.console.output import Display
    from pyspark_mysqlbinlog.connector.delta.mirror import DeltaMirror
    from pyspark_mysqlbinlog.connector.metrics.watch import QueryWatch

__all__ = ["SparkEndedError", "run"]

# Seconds.
_POLL_SECONDS = 0.5
_STOP_POLL_SECONDS = 0.02
_STOP_TIMEOUT_SECONDS = 5.0
# How often an idle query reports its lag, in milliseconds.
_WATCHED = {"spark.sql.streaming.noDataProgressEventInterval": "1000"}


class SparkEndedError(Exception):
    """Spark did not start, or its JVM ended unexpectedly."""


def run(
    mirror: DeltaMirror,
    trigger: Mapping[str, Any],
    settings: Mapping[str, str],
    display: Display,
    watch: QueryWatch | None = None,
) -> None:
    """Run a mirror's query to its end, or until SIGTERM or SIGINT.

    watch : observes the query; None if no metrics are wanted.

    Raises
    ------
    SparkEndedError, or the query's error.
    """
    stopped = Event()
    _set_at_signals(stopped)
    # py4j also raises the errors that it logs; after Spark was stopped they are noise.
    for name in (None, "py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(name).addFilter(lambda _: False)

    def tell(line: str) -> None:
        # Spark logs much about interrupted threads.
        if not stopped.is_set():
            display.line(line)

    with display:
        with jvm_lines_to(tell):
            spark = _spark(settings if watch is None else {**_WATCHED, **settings})
        # Spark has replaced the handler of SIGINT.
        _set_at_signals(stopped)
        try:
            _follow(mirror, mirror.start(spark, **trigger), stopped, display, watch)
        except Exception as error:
            # A signal to the process group stops the JVM as well.
            if not stopped.is_set():
                code = _ended_jvm(spark)
                if code is not None:
                    raise SparkEndedError(
                        f"Spark's JVM ended with {code}: does it have enough memory (--conf"
                        " spark.driver.memory=4g)?"
                    ) from error
                raise
        finally:
            # A signal to all processes may have ended the JVM, and Spark would log a warning.
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                spark.stop()


def _follow(
    mirror: DeltaMirror,
    query: StreamingQuery,
    stopped: Event,
    display: Display,
    watch: QueryWatch | None,
) -> None:
    """Show the progress until the query ends, or end it."""
    is_over = False
    if watch is not None:
        watch.name = query.name or str(query.id)
    while not is_over and not stopped.is_set():
        # PySpark annotates an int, but accepts fractions.
        is_over = bool(query.awaitTermination(_POLL_SECONDS))  # type: ignore[arg-type]
        display.show(mirror.progress)
        if watch is not None:
            watch.observe(query)
    if not is_over:
        _let_batch_end(query)
        query.stop()
        display.show(mirror.progress)


def _let_batch_end(query: StreamingQuery) -> None:
    """Wait until no batch is running, with a time limit."""
    deadline = monotonic() + _STOP_TIMEOUT_SECONDS
    while query.status["isTriggerActive"] and monotonic() < deadline:
        sleep(_STOP_POLL_SECONDS)


def _set_at_signals(stopped: Event) -> None:
    """Set `stopped` at SIGTERM and SIGINT; a second one ends the process at once."""

    def note(number: int, _: object) -> None:
        stopped.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        if not stopped.is_set():
            signal.signal(number, note)


def _spark(settings: Mapping[str, str]) -> SparkSession:
    """Return a session on all cores, unless --conf spark.master is set."""
    # Otherwise Spark would use the first `python3` on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("pyspark-mysqlbinlog")
    usual = {
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    wanted = usual | dict(settings)
    if wanted["spark.master"].startswith("local"):
        # A local Spark needs no connections from outside.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for name, value in wanted.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkRuntimeError, OSError) as error:
        raise SparkEndedError(
            f"Spark did not start ({error}): is a JDK 17 or newer installed (JAVA_HOME)?"
        ) from error


def _ended_jvm(spark: SparkSession) -> int | None:
    """Return the exit code of the JVM if it has ended or is about to."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        return None
    with contextlib.suppress(subprocess.TimeoutExpired):
        return int(process.wait(1.0))
    return None
