"""One run of a mirror, in a Spark of its own, until its query ends or a signal comes."""

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

    from pyspark_mysqlbinlog.connector.cli.output import Display
    from pyspark_mysqlbinlog.connector.delta.mirror import DeltaMirror

__all__ = ["SparkEndedError", "run"]

# Seconds.
_LOOK_EVERY = 0.5
_LOOK_SOON = 0.02
_PATIENCE = 5.0


class SparkEndedError(Exception):
    """Spark did not start, or its JVM ended by itself."""


def run(
    mirror: DeltaMirror, trigger: Mapping[str, Any], settings: Mapping[str, str], display: Display
) -> None:
    """Run a mirror's query to its end, or until SIGTERM or SIGINT.

    Raises
    ------
    SparkEndedError : and what the query ended with.
    """
    stopped = Event()
    _set_at_signals(stopped)
    # What py4j logs of errors comes as an exception, too; of a Spark that was stopped it is noise.
    for name in (None, "py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(name).addFilter(lambda _: False)

    def tell(line: str) -> None:
        # Spark has pages to say about threads that are interrupted.
        if not stopped.is_set():
            display.line(line)

    with display:
        with jvm_lines_to(tell):
            spark = _spark(settings)
        # Spark has taken SIGINT for itself.
        _set_at_signals(stopped)
        try:
            _follow(mirror, mirror.start(spark, **trigger), stopped, display)
        except Exception as error:
            # Who stops a group of processes stops the JVM as well.
            if not stopped.is_set():
                code = _ended_jvm(spark)
                if code is not None:
                    raise SparkEndedError(
                        f"Spark's JVM ended with {code}: has it enough memory (--conf"
                        " spark.driver.memory=4g)?"
                    ) from error
                raise
        finally:
            # A signal to all processes may have ended the JVM, of which Spark would warn.
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                spark.stop()


def _follow(mirror: DeltaMirror, query: StreamingQuery, stopped: Event, display: Display) -> None:
    """Show the progress until the query ends, or end it."""
    is_over = False
    while not is_over and not stopped.is_set():
        # Annotated int, takes fractions.
        is_over = bool(query.awaitTermination(_LOOK_EVERY))  # type: ignore[arg-type]
        display.show(mirror.progress)
    if not is_over:
        _let_batch_end(query)
        query.stop()
        display.show(mirror.progress)


def _let_batch_end(query: StreamingQuery) -> None:
    """Wait for a moment between two batches, though not for long."""
    deadline = monotonic() + _PATIENCE
    while query.status["isTriggerActive"] and monotonic() < deadline:
        sleep(_LOOK_SOON)


def _set_at_signals(stopped: Event) -> None:
    """Note SIGTERM and SIGINT; a second one ends the process at once."""

    def note(number: int, _: object) -> None:
        stopped.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        if not stopped.is_set():
            signal.signal(number, note)


def _spark(settings: Mapping[str, str]) -> SparkSession:
    """A session on all cores, unless --conf spark.master says otherwise."""
    # Spark would take any `python3` of the PATH.
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
        # Nobody from outside needs to reach it.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for name, value in wanted.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkRuntimeError, OSError) as error:
        raise SparkEndedError(
            f"Spark did not start ({error}): is there a JDK of version 17 or newer (JAVA_HOME)?"
        ) from error


def _ended_jvm(spark: SparkSession) -> int | None:
    """The exit code of the JVM, if it has ended or is about to."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        return None
    with contextlib.suppress(subprocess.TimeoutExpired):
        return int(process.wait(1.0))
    return None
