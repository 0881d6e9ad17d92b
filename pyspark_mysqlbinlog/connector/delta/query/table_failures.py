"""Decides which errors stop one table of a mirror, and which fail the batch of all tables.

An error of delta-rs or Spark shows what failed, and rarely why. If it failed the batch, Spark would
run the same batch at every start, and no table would continue. So it stops its table if

* it is not known to concern the store, the process or the query: network, credentials, a full disk,
  memory, a cancelled job, another writer's commit (see `error_kinds`). These fail the batch, and
  pass;
* the same happens again a moment later, after everything about the table was read again;
* the stop can be stored in the Delta table, or in the checkpoint alone (see `unstored_stops`).
  Otherwise a later start would continue without the changes of this batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from time import sleep
from typing import TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pyspark_mysqlbinlog.connector.delta.store.error_kinds import (
    PATHS,
    is_of_catalog,
    is_of_store,
    os_error_codes,
    without_traces,
)
from pyspark_mysqlbinlog.errors import (
    FormatError,
    MirrorError,
    MySQLBinlogError,
    SchemaError,
    StoreError,
    UnrepresentableValueError,
)
from pyspark_mysqlbinlog.names import Table

__all__ = ["may_concern_table", "run_for_table", "store_error"]

T = TypeVar("T")

# Errors that one table's rows or files may cause. Of RuntimeErrors, which conflicts are, only
# NotImplementedError, which delta-rs raises for a type that it cannot convert.
_OF_TABLES = (
    pa.ArrowException,
    PySparkException,
    Py4JJavaError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)
# Names of errors of delta-rs, which may not be installed. PanicException is not an Exception.
_OF_DELTA_RS = frozenset({"DeltaError", "PanicException"})
_OF_VALUES = (SchemaError, UnrepresentableValueError, FormatError)
_OF_ALL = (OSError, MemoryError, pa.ArrowCancelled)
_CONFLICTS = ("Concurrent", "MetadataChanged", "ProtocolChanged")
# An object store's answer, in XML.
_ANSWER = re.compile(r"<Code>(\w+)</Code>\s*<Message>([^<]*)</Message>")
# A transient error should not last until the second attempt.
RETRY_SECONDS = 1.0
_MAX_SHOWN_CHARACTERS = 300
_MAX_NAME_BYTES = 255


def run_for_table(name: Table, work: Callable[[], T], read_again: Callable[[], object]) -> T:
    """Do one table's part of a batch; MirrorError if it fails for a reason of that table.

    read_again : makes `work` forget what it knows about the table.
    """
    try:
        return _with_typed_values(name, work)
    except BaseException as error:
        if not may_concern_table(error):
            raise
    read_again()
    sleep(RETRY_SECONDS)
    try:
        return _with_typed_values(name, work)
    except BaseException as error:
        read_again()
        if not may_concern_table(error):
            raise
        raise MirrorError(_said(error), table=".".join(name)) from error


def _with_typed_values(name: Table, work: Callable[[], T]) -> T:
    try:
        return work()
    except _OF_VALUES as error:
        raise MirrorError(
            f"{error.message}; {error.hint}, and reload the table", table=".".join(name)
        ) from error


def may_concern_table(error: BaseException) -> bool:
    """Return whether an error may come from one table, not the store, the process or the query."""
    if isinstance(error, MySQLBinlogError):
        return False  # such an error has its own message, and is final
    chain = [*_chain(error)]
    if any(isinstance(each, _OF_ALL) and not _is_of_one_file(each) for each in chain):
        return False
    if any(_is_conflict(each) or is_of_store(without_traces(str(each))) for each in chain):
        return False
    names = {kind.__name__ for kind in type(error).__mro__}
    # delta-rs raises errors of Arrow as Exception, and some errors of a file as OSError.
    is_plain = type(error) is Exception or isinstance(error, OSError)
    return is_plain or isinstance(error, _OF_TABLES) or not names.isdisjoint(_OF_DELTA_RS)


def store_error(error: BaseException) -> BaseException:
    """Return the StoreError, of one line, for an error of the store; other errors unchanged."""
    text = str(error)
    if isinstance(error, (PySparkException, Py4JJavaError)) and is_of_catalog(without_traces(text)):
        return StoreError(
            f"the catalog of the Delta tables failed: {_in_one_line(text)}; check it and the"
            " account's permissions in it, and start again with the same checkpoint"
        )
    if not isinstance(error, OSError) or not is_of_store(without_traces(text)):
        return error
    answer = _ANSWER.search(text)
    reason = _in_one_line(text) if answer is None else ": ".join(answer.groups())
    return StoreError(f"the store of the Delta tables failed: {reason}; {StoreError.hint}")


def _is_of_one_file(error: BaseException) -> bool:
    """Return whether an OSError is delta-rs's, of one file: it has a text but no `errno`."""
    if not isinstance(error, OSError) or error.errno is not None:
        return False
    text = without_traces(str(error))
    has_cause = isinstance(error, FileNotFoundError) or bool(os_error_codes(text))
    return has_cause and not is_of_store(text)


def _is_conflict(error: BaseException) -> bool:
    """Return whether it is a conflict of Delta for Spark with another writer."""
    name = type(error).__name__
    return isinstance(error, PySparkException) and name.startswith(_CONFLICTS)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _said(error: BaseException) -> str:
    """Return the error in one line, and the remedy."""
    remedy = "correct the cause"
    if _has_long_name(without_traces(str(error))):
        remedy = (
            "a partition value of the Delta table is longer than a file name can be:"
            " partition the table by another column"
        )
    return (
        "the Delta table could not be written, in two attempts"
        f" ({type(error).__name__}: {_in_one_line(str(error))}); {remedy}, and reload the table"
    )


def _in_one_line(text: str) -> str:
    """Return an error's text in one line, shortened in the middle."""
    # Spark's own message comes first, and the cause last.
    text = " ".join(without_traces(text).rpartition("Caused by: ")[2].split())
    if len(text) > _MAX_SHOWN_CHARACTERS:
        text = f"{text[: _MAX_SHOWN_CHARACTERS // 2]} … {text[-_MAX_SHOWN_CHARACTERS // 2 :]}"
    return text


def _has_long_name(text: str) -> bool:
    """Return whether a path has a part longer than a file name; Spark does not report this."""
    parts = (part for path in PATHS.findall(text) for part in path.split("/"))
    return any(len(part.encode()) > _MAX_NAME_BYTES for part in parts)
