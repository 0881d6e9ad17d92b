"""`cause_of`: each error class, with any location, from each kind of message of Spark."""

from __future__ import annotations

import inspect
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyspark_mysqlbinlog
from pyspark_mysqlbinlog import errors
from pyspark_mysqlbinlog.errors import MySQLBinlogError, PositionError, cause_of

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, MySQLBinlogError)
]

# Spark's text around the error's line: classic sessions and Connect, driver and executors.
PAGES = {
    "the line alone": "{}",
    "analysis": "[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: {}\n"
    " SQLSTATE: 38000",
    "analysis by Connect": "[PYTHON_DATA_SOURCE_ERROR] Failed: {}\n SQLSTATE: 38000\n\n"
    "JVM stacktrace:\norg.apache.spark.sql.AnalysisException\n\tat org.apache.spark.X.y(X.scala:1)",
    "stream": "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: {}\n"
    " SQLSTATE: 38000 SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: [id = 1]\n"
    'Current Committed Offsets: {{MicroBatch[json]: {{"schemas": "json,x:QUJD"}}}}\n\n'
    "Logical Plan:\n~WriteToMicroBatchDataSource",
    "job": "Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent"
    " failure: org.apache.spark.api.python.PythonException: {}\n\n\tat org.apache.X.y(X.scala:1)\n"
    "\nDriver stacktrace:",
    "SQLSTATE on the line": "[X] {} SQLSTATE: 38000 SQLSTATE: XXKST",
}


class SparkError(Exception):
    """A stand-in for Spark's exceptions, whose name and class do not matter."""


def printed(error: MySQLBinlogError) -> str:
    """Return the traceback that the Python process sends to Spark."""
    try:
        raise error
    except MySQLBinlogError:
        return traceback.format_exc().rstrip("\n")


def same(found: MySQLBinlogError | None, error: MySQLBinlogError) -> None:
    assert type(found) is type(error)
    assert found is not None
    assert vars(found) == vars(error)
    assert str(found) == str(error)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_class_is_recovered_from_every_spark_message(
    kind: type[MySQLBinlogError], page: str
) -> None:
    error = kind("expected 1: found 2 (or 3); go on", file="b.000001", position=4, table="d.t")
    same(cause_of(SparkError(page.format(printed(error)))), error)


NAMES = st.one_of(
    st.none(),
    st.text(),
    st.sampled_from(["d.a b", "d.a)", "d.t (at b:1)", "d.t, table e.u", 'd."', "d.\\", "b:4", ""]),
    st.sampled_from(["d.ñ漢", "d.a\nb", "d.\u2028", "position 4", "d.t (table x"]),
)


@given(file=NAMES, position=st.none() | st.integers(min_value=0), table=NAMES)
def test_any_file_position_and_table_are_recovered_from_spark_error(
    file: str | None, position: int | None, table: str | None
) -> None:
    error = PositionError("no (such) place", file=file, position=position, table=table)
    assert len(str(error).splitlines()) == 1
    same(cause_of(SparkError(PAGES["stream"].format(printed(error)))), error)


@given(st.text())
def test_any_message_is_recovered_from_spark_error(message: str) -> None:
    error = PositionError(message, file="b.000001", table="d.t")
    same(cause_of(SparkError(PAGES["job"].format(printed(error)))), error)


@pytest.mark.parametrize(
    "message", ["ends in brackets (so)", "ends in ()", "of (table)", "SQLSTATE: 3", "a (b: c)"]
)
def test_error_without_location_is_recovered_with_its_whole_message(message: str) -> None:
    error = PositionError(message)
    same(cause_of(SparkError(PAGES["analysis"].format(printed(error)))), error)


def test_error_in_cause_or_context_of_caught_exception_is_recovered() -> None:
    error = PositionError("no such place", position=4)
    outer = RuntimeError("the job failed")
    outer.__cause__ = SparkError(printed(error))
    same(cause_of(outer), error)
    outer.__cause__ = None
    outer.__context__ = SparkError(f"org.X: pyspark_mysqlbinlog.errors.PositionError: {error}")
    same(cause_of(outer), error)


def test_cause_of_a_circle_of_other_exceptions_is_none() -> None:
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__context__, second.__context__ = second, first
    assert cause_of(first) is None


def test_cause_of_package_error_is_itself() -> None:
    error = PositionError("no such place")
    assert cause_of(error) is error


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[TABLE_OR_VIEW_NOT_FOUND] no `pyspark_mysqlbinlog.errors.PositionError`",
        "ValueError: PositionError: no",
        "other_pyspark_mysqlbinlog.errors.PositionError: no",
    ],
)
def test_cause_of_foreign_error_is_none(text: str) -> None:
    assert cause_of(SparkError(text)) is None


def test_cause_of_no_exception_is_none() -> None:
    assert cause_of(None) is None


class LostGatewayError(Exception):
    """An error like those of Py4J, which request their text from the JVM."""

    def __str__(self) -> str:
        raise ConnectionError("the JVM is gone")


def test_exception_whose_text_raises_is_skipped_for_its_cause() -> None:
    assert cause_of(LostGatewayError("call", 1)) is None
    inner = LostGatewayError("call")
    inner.__cause__ = PositionError("no such place")
    assert cause_of(inner) is inner.__cause__


def test_unknown_error_class_becomes_base_error_with_its_location() -> None:
    found = cause_of(SparkError("pyspark_mysqlbinlog.errors.NewError: no (at b.000001:4)"))
    assert type(found) is MySQLBinlogError
    assert (found.message, found.file, found.position) == ("NewError: no", "b.000001", 4)
    # The module has this name, but it is not an error class.
    assert type(cause_of(SparkError("pyspark_mysqlbinlog.errors.re: no"))) is MySQLBinlogError


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_class_has_its_own_one_line_hint(kind: type[MySQLBinlogError]) -> None:
    # The hint of the base class is for bugs.
    assert kind is MySQLBinlogError or kind.hint != MySQLBinlogError.hint
    assert len(kind.hint.splitlines()) == 1


def test_package_exports_cause_of() -> None:
    assert pyspark_mysqlbinlog.cause_of is cause_of
