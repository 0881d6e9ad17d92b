"""Errors that stop one table, with their messages, and errors that fail the whole batch."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.errors import AnalysisException

from pyspark_mysqlbinlog.connector.delta.query import table_failures
from pyspark_mysqlbinlog.connector.delta.query.table_failures import run_for_table, store_error
from pyspark_mysqlbinlog.connector.delta.store.commits import commit_conflict_error
from pyspark_mysqlbinlog.errors import (
    LostConnectionError,
    MirrorError,
    OptionError,
    SchemaError,
    StoreError,
    UnrepresentableValueError,
)

_TABLE = ("shop", "orders")
_CATALOG_ERRORS = [
    "[PERMISSION_DENIED] User does not have CREATE TABLE on Schema 'main.raw'. SQLSTATE: 42501",
    "[INSUFFICIENT_PERMISSIONS] Insufficient privileges:\nUser does not have MODIFY on Table `t`",
    "An error occurred while calling o7.sql.\n: java.lang.RuntimeException: PERMISSION_DENIED: x",
    (
        "org.apache.hadoop.hive.ql.metadata.AuthorizationException: No privilege 'Create' found for"
        " outputs { database:raw}"
    ),
    (
        "org.apache.hadoop.hive.ql.metadata.HiveException: MetaException(message:"
        "java.security.AccessControlException: Permission denied: user=spark, access=WRITE)"
    ),
    (
        "org.apache.hadoop.hive.ql.metadata.HiveException: java.lang.RuntimeException: Unable to"
        " instantiate org.apache.hadoop.hive.ql.metadata.SessionHiveMetaStoreClient"
    ),
    "x: org.apache.thrift.transport.TTransportException: java.net.ConnectException: refused",
    (
        "An error occurred while calling o7.sql.\n: io.unitycatalog.client.ApiException:"
        ' createTable call failed with: 403 - {"error_code":"PERMISSION_DENIED","message":"x"}'
    ),
]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_failures, "RETRY_SECONDS", 0)


class PanicException(BaseException):
    """An exception with the name that a Rust panic has in Python."""


def _raising(*errors: BaseException | None) -> tuple[Callable[[], int], list[int]]:
    """Return work that raises one of these errors per call, and a counter for rereads."""
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


def test_table_error_is_retried_once_and_success_is_returned() -> None:
    assert _run(None) == (7, 0)
    assert _run(DeltaError("x"), None) == (7, 1)


@pytest.mark.parametrize(
    "error",
    [
        DeltaError("Kernel error: Json error"),
        CommitFailedError("the table is append-only"),
        PanicException("unwrap on None"),
        AnalysisException("no such column"),
        # Names and values in a message are not an error of the catalog.
        AnalysisException("[CAST_INVALID_INPUT] The value 'PERMISSION_DENIED: x' cannot be cast"),
        AnalysisException("io.unitycatalog.client.ApiException: failed with: 400 - {}"),
        pa.ArrowInvalid("Integer value out of range"),
        ValueError("year 0 is out of range"),
        AnalysisException(
            "Job aborted due to stage failure: File name too long\n"
            "\tat org.apache.spark.SparkContext.runJob(SparkContext.scala:2509)\n"
            "\tat java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(Unknown Source)\n"
            "\tat org.apache.spark.network.client.TransportClient.connection(X.scala:1)\n"
            "Driver stacktrace:\n\tat java.lang.InterruptedException.timeout(X.java:2)"
        ),
        # Names and values in paths do not show the cause.
        DeltaError("Unable to open file /lake/timeout/connection/p=forbidden: File exists"),
        # delta-rs raises errors of Arrow and of single files with these classes.
        Exception("Cast error: Cannot cast string 'x' to value of Int64 type"),
        FileNotFoundError("Object at location /lake/t/x not found\n ↳ gone (os error 2)"),
        OSError("Kernel error -> Generic LocalFileSystem error\n ↳ No folder (os error 20)"),
        DeltaError("Generic S3 error: Client error with status 400: <Code>KeyTooLongError</Code>"),
    ],
)
def test_the_same_error_twice_stops_the_table(error: BaseException) -> None:
    with pytest.raises(MirrorError) as raised:
        _run(error, error)
    assert raised.value.table == "shop.orders"
    assert raised.value.__cause__ is error
    assert str(error).splitlines()[0].split()[-1] in raised.value.message
    assert raised.value.message.endswith("and reload the table")


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
        DeltaError("Generic LocalFileSystem error: Input/output error (os error 5)"),
        DeltaError("Kernel error: Stale file handle (os error 116)"),
        PanicException('on an `Err` value: Os { code: 28, kind: StorageFull, message: "" }'),
        OSError(
            "Kernel error -> Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing GET http://x"
            "\n \x1b[31m↳\x1b[0m tcp connect error\n ↳ Connection refused (os error 111)"
        ),
        DeltaError("Generic MicrosoftAzure error: Server returned non-2xx status code: 503"),
        DeltaError("The operation lacked the necessary privileges to complete for path t/x: y"),
        DeltaError("Object at location t not found: 404: <Code>NoSuchBucket</Code>"),
        AnalysisException(
            "[TASK_WRITE_FAILED] Task failed while writing rows to file:/t.\n\tat x.Y(Z:1)\n"
            "Caused by: java.io.IOException: No space left on device\n\tat java.io.X(Y:1)"
        ),
        AnalysisException("x\nCaused by: java.io.IOException: Input/output error\n\tat a.B(C:1)"),
        AnalysisException(
            "y\nCaused by: java.io.FileNotFoundException: /t/x (Too many open files)"
        ),
        AnalysisException("y\nCaused by: java.net.SocketTimeoutException: Read timed out"),
        AnalysisException("calling o1.x.\n: com.amazonaws.services.s3.model.AmazonS3Exception: z"),
        AnalysisException("Job 3 cancelled because SparkContext was shut down"),
        AnalysisException("most recent failure: Lost task 0.3: ExecutorLostFailure (executor 2)"),
        AnalysisException("Job 12 cancelled part of cancelled job group 5"),
        AnalysisException("java.lang.OutOfMemoryError: Java heap space"),
        AnalysisException("[DELTA_CONCURRENT_APPEND] files were added"),
        *(AnalysisException(text) for text in _CATALOG_ERRORS),
    ],
)
def test_error_that_concerns_all_tables_is_raised_at_once(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        _run(error, AssertionError("it is not tried again"))
    assert raised.value is error
    with pytest.raises(type(error)) as raised:
        _run(DeltaError("first another"), error)
    assert raised.value is error


# Each may be the name of a column or a table, or a value of a row.
WORDS = (
    "cancelled_at", "interrupted", "connection", "timeout", "timed out", "credential", "throttle",
    "shutdown", "forbidden", "no such bucket", "no such file", "503", "503 Service Unavailable",
    "error sending request", "Connection refused", "No space left on device", "os error 28",
    "(os error 28)", "java.net.SocketException", "Resources exhausted", "Generic S3 error",
    "x: Generic S3 error: y", "<Code>SlowDown</Code>", "java heap space", "access denied",
)  # fmt: skip
MESSAGES: tuple[tuple[type[Exception], str], ...] = (
    (DeltaError, 'Schema error: No field named "{}".\nValid fields are s.id, t."{}", t.id.'),
    (DeltaError, "Parquet error: ArrowError(CastError(\"Cannot cast string '{}' to Int32\"))"),
    (
        DeltaError,
        "Preview of invalid data:\n\n+----+---+\n| id | {} |\n+----+---+\n| -1 | {} |\n+----+",
    ),
    (DeltaError, "Generic DeltaTable error: Unable to open file /lake/t/p={}/x.parquet: gone"),
    (Exception, "Cast error: Cannot cast string '{}' to value of Int64 type"),
    (AnalysisException, "[DELTA_FAILED_TO_MERGE_FIELDS] Failed to merge fields '{}' and '{}'"),
    (AnalysisException, "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `{}` is not there"),
    (AnalysisException, "java.lang.IllegalArgumentException: requirement failed: `t`.`{}` is not"),
    (pa.ArrowInvalid, "In column '{}': Failed to parse string: '{}' as a scalar of type int32"),
)


@pytest.mark.parametrize("word", WORDS)
def test_store_words_in_names_and_values_stop_only_the_table(word: str) -> None:
    for kind, message in MESSAGES:
        in_path = word.replace(" ", "%20").replace(":", "%3A").replace("/", "%2F")
        text = message.replace("{}", in_path if "/p={}" in message else word)
        error = kind(text)
        with pytest.raises(MirrorError) as raised:
            _run(error, error)
        assert raised.value.__cause__ is error, text


@pytest.mark.parametrize(
    "name", ["cancelled_at", "interrupted", "connection", "timeout", "shutdown"]
)
def test_store_words_in_unquoted_names_stop_only_the_table(name: str) -> None:
    error = DeltaError(f"Schema error: No field named {name}.\nValid fields are {name}, t.{name}.")
    with pytest.raises(MirrorError):
        _run(error, error)


def test_table_is_retried_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(table_failures, "RETRY_SECONDS", 1.5)
    monkeypatch.setattr(table_failures, "sleep", pauses.append)
    assert _run(DeltaError("Stale"), None) == (7, 1)
    assert pauses == [1.5]


def test_table_error_caused_by_os_error_is_raised_at_once() -> None:
    error = DeltaError("Failed to parse parquet")
    error.__cause__ = OSError("gone")
    with pytest.raises(DeltaError):
        _run(error, None)


@pytest.mark.parametrize("kind", [SchemaError, UnrepresentableValueError])
def test_schema_or_value_error_stops_the_table_with_its_message(kind: type[Exception]) -> None:
    with pytest.raises(MirrorError, match=r"it is too large; .*, and reload the table"):
        _run(kind("it is too large"))


def test_mirror_error_is_raised_unchanged_without_retry() -> None:
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
    assert message.endswith("partition the table by another column, and reload the table")


@pytest.mark.parametrize("text", _CATALOG_ERRORS)
def test_an_error_of_the_catalog_is_a_store_error_of_one_line(text: str) -> None:
    failure = store_error(AnalysisException(text))
    assert isinstance(failure, StoreError)
    assert failure.message.startswith("the catalog of the Delta tables failed: ")
    assert "check it and the account's permissions in it" in failure.message
    assert "\n" not in failure.message


def test_an_error_of_one_table_is_not_a_store_error() -> None:
    error = AnalysisException("no such column")
    assert store_error(error) is error
