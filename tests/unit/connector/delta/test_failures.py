"""Which errors stop one table, which fail the batch of all, and what is said of the first."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.errors import AnalysisException

from pyspark_mysqlbinlog.connector.delta.engine import commit_conflict_error
from pyspark_mysqlbinlog.connector.delta.failures import run_for_table
from pyspark_mysqlbinlog.errors import (
    LostConnectionError,
    MirrorError,
    OptionError,
    SchemaError,
    UnrepresentableValueError,
)

_TABLE = ("shop", "orders")


class PanicException(BaseException):
    """A panic of Rust has this name in Python."""


def _raising(*errors: BaseException | None) -> tuple[Callable[[], int], list[int]]:
    """Work that raises these, one at each call; and how often it is to read all again."""
    left, again = [*errors], [0]

    def work() -> int:
        error = left.pop(0)
        if error is not None:
            raise error
        return 7

    return work, again


def _run(*errors: BaseException | None) -> tuple[int, int]:
    work, again = _raising(*errors)

    def read_again() -> None:
        again[0] += 1

    return run_for_table(_TABLE, work, read_again), again[0]


def test_what_goes_well_the_second_time_is_no_failure() -> None:
    assert _run(None) == (7, 0)
    assert _run(DeltaError("x"), None) == (7, 1)


@pytest.mark.parametrize(
    "error",
    [
        DeltaError("Kernel error: Json error"),
        CommitFailedError("the table is append-only"),
        PanicException("unwrap on None"),
        AnalysisException("no such column"),
        pa.ArrowInvalid("Integer value out of range"),
        ValueError("year 0 is out of range"),
        AnalysisException(
            "Job aborted due to stage failure: File name too long\n"
            "\tat org.apache.spark.SparkContext.runJob(SparkContext.scala:2509)\n"
            "\tat java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(Unknown Source)\n"
            "\tat org.apache.spark.network.client.TransportClient.connection(X.scala:1)\n"
            "Driver stacktrace:\n\tat java.lang.InterruptedException.timeout(X.java:2)"
        ),
        # Names and values in paths tell nothing.
        DeltaError("Unable to open file /lake/timeout/connection/p=forbidden: File exists"),
    ],
)
def test_the_same_error_twice_stops_the_table(error: BaseException) -> None:
    with pytest.raises(MirrorError) as raised:
        _run(error, error)
    assert raised.value.table == "shop.orders"
    assert raised.value.__cause__ is error
    assert str(error).splitlines()[0].split()[-1] in raised.value.message
    assert raised.value.message.endswith("and load the table anew")


@pytest.mark.parametrize(
    "error",
    [
        OSError("reset"),
        TimeoutError(),
        MemoryError(),
        KeyboardInterrupt(),
        SystemExit(1),
        GeneratorExit(),
        RuntimeError("another mirror writes this table"),
        commit_conflict_error("/lake/t"),
        OptionError("history: it has other columns"),
        LostConnectionError("lost"),
        DeltaError("No space left on device (os error 28)"),
        DeltaError("Client error with status 403 Forbidden: <Code>AccessDenied</Code>"),
        DeltaError("<Code>NoSuchBucket</Code>"),
        DeltaError("\x1b[31merror sending request\x1b[0m"),
        DeltaError("Resources exhausted: Failed to allocate"),
        AnalysisException("Job 12 cancelled part of cancelled job group 5"),
        AnalysisException("java.lang.OutOfMemoryError: Java heap space"),
        AnalysisException("[DELTA_CONCURRENT_APPEND] files were added"),
    ],
)
def test_what_concerns_all_is_raised_at_once(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        _run(error, AssertionError("it is not tried again"))
    assert raised.value is error
    with pytest.raises(type(error)) as raised:
        _run(DeltaError("first another"), error)
    assert raised.value is error


def test_what_is_behind_an_error_counts() -> None:
    error = DeltaError("Failed to parse parquet")
    error.__cause__ = OSError("gone")
    with pytest.raises(DeltaError):
        _run(error, None)


@pytest.mark.parametrize("kind", [SchemaError, UnrepresentableValueError])
def test_a_value_that_delta_can_not_hold_keeps_its_words(kind: type[Exception]) -> None:
    with pytest.raises(MirrorError, match=r"it is too large; .*, and load the table anew"):
        _run(kind("it is too large"))


def test_a_mirror_s_own_error_is_final() -> None:
    error = MirrorError("the log has rows without v; load the table anew")
    with pytest.raises(MirrorError) as raised:
        _run(error)
    assert raised.value is error


def test_a_long_error_is_shortened_in_the_middle() -> None:
    text = f"Unable to open file /lake/p={'%E6%BC%A2' * 30}: File name too long (os error 36)"
    with pytest.raises(MirrorError) as raised:
        _run(DeltaError(text), DeltaError(f"{text}\nstack backtrace:\n 0: unknown"))
    message = raised.value.message
    assert len(message) < 650
    assert "Unable to open file" in message
    assert "File name too long (os error 36)" in message
    assert "backtrace" not in message
    assert message.endswith("partition the table by another column, and load the table anew")
