"""Which errors stop one table of a mirror, and which fail the batch of all.

An error of delta-rs or Spark shows what failed, and seldom why. If it failed the batch, Spark would
run the same batch at every start, and no table would go on. So it stops its table, provided that

* it is not known to concern the store, the process or the query: network, credentials, a full disk,
  memory, a job that was cancelled, another writer's commit. These fail the batch, and pass;
* the same happens a second time, with everything about the table read again;
* the stop can be stored in the Delta table. Otherwise a later start would go on without the changes
  of this batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pyspark_mysqlbinlog.errors import (
    FormatError,
    MirrorError,
    MySQLBinlogError,
    SchemaError,
    UnrepresentableValueError,
)
from pyspark_mysqlbinlog.names import Table

__all__ = ["run_for_table"]

T = TypeVar("T")

# Errors that may come of one table's rows or files. RuntimeError is not among them: conflicts are.
_OF_TABLES = (
    pa.ArrowException,
    PySparkException,
    Py4JJavaError,
    *(ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError),
    *(TypeError, ValueError),
)
# Of delta-rs, which may be not installed; a panic is no Exception.
_OF_DELTA_RS = frozenset({"DeltaError", "PanicException"})
_OF_VALUES = (SchemaError, UnrepresentableValueError, FormatError)
_OF_ALL = (OSError, MemoryError, pa.ArrowCancelled)
_OF_ALL_TEXT = re.compile(
    # The disk, and the process.
    r"no space left|disk quota|not enough space|read-only file system|too many open files"
    r"|cannot allocate memory|out ?of ?memory|java heap space|gc overhead|resources exhausted"
    # The way to the store, and its own troubles.
    r"|timed? ?out|connection|connect error|broken pipe|error sending request|dns error"
    r"|unknownhost|no route to host|network is|socketexception|temporarily|service ?unavailable"
    r"|slow ?down|too ?many ?requests|throttl|internal ?(server ?)?error|bad gateway"
    # Who may use it, and whether it is there.
    r"|access ?denied|permission denied|forbidden|unauthori[sz]ed|unauthenticated|credential"
    r"|invalidaccesskey|signaturedoesnotmatch|(expired|invalid) ?token|accountproblem"
    r"|no ?such ?bucket|bucket does not exist|container ?(not ?found|does not exist)"
    # Spark that ends, a query that is stopped, executors that went.
    r"|cancell?ed|interrupted|shut ?down|stopped sparkcontext|executor ?lost|fetchfailed"
    # Others that write.
    r"|delta_(concurrent|metadata_changed|protocol_changed)",
    re.IGNORECASE,
)
# Where Spark was, and not what happened: each of its errors has been in `java.util.concurrent`.
_FRAMES = re.compile(
    r"^\s+(?:at .*|\.\.\. \d+ more)$|^Driver stacktrace:$|stack backtrace:[\s\S]*", re.MULTILINE
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
# Paths have names of tables and values of rows in them.
_PATHS = re.compile(r"\S*/\S*")
_MOST_SHOWN = 300
_MOST_NAME_BYTES = 255


def run_for_table(name: Table, work: Callable[[], T], read_again: Callable[[], object]) -> T:
    """Do one table's part of a batch; MirrorError where it fails for that table's own reasons.

    read_again : makes `work` forget what it knows of the table.
    """
    try:
        return _with_typed_values(name, work)
    except BaseException as error:
        if not _may_concern_table(error):
            raise
    read_again()
    try:
        return _with_typed_values(name, work)
    except BaseException as error:
        read_again()
        if not _may_concern_table(error):
            raise
        raise MirrorError(_said(error), table=".".join(name)) from error


def _with_typed_values(name: Table, work: Callable[[], T]) -> T:
    try:
        return work()
    except _OF_VALUES as error:
        raise MirrorError(
            f"{error.message}; {error.hint}, and load the table anew", table=".".join(name)
        ) from error


def _may_concern_table(error: BaseException) -> bool:
    if isinstance(error, MySQLBinlogError):
        return False  # it has its own words, and is final
    chain = [*_chain(error)]
    if any(isinstance(each, _OF_ALL) for each in chain):
        return False
    if any(_OF_ALL_TEXT.search(_PATHS.sub("", _text(each).replace("</", "<"))) for each in chain):
        return False
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, _OF_TABLES) or not names.isdisjoint(_OF_DELTA_RS)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _text(error: BaseException) -> str:
    return _FRAMES.sub("", _ANSI.sub("", str(error)))


def _said(error: BaseException) -> str:
    """The error in one line, shortened in the middle, and what to do."""
    # Spark's own words come first, and the cause last.
    full = _text(error)
    text = " ".join(full.rpartition("Caused by: ")[2].split())
    if len(text) > _MOST_SHOWN:
        text = f"{text[: _MOST_SHOWN // 2]} … {text[-_MOST_SHOWN // 2 :]}"
    remedy = "correct the cause"
    if _has_long_name(full):
        remedy = (
            "a value by which the Delta table is partitioned is longer than a file name can be:"
            " partition the table by another column"
        )
    return (
        f"a batch could not be written to the Delta table, twice"
        f" ({type(error).__name__}: {text}); {remedy}, and load the table anew"
    )


def _has_long_name(text: str) -> bool:
    """Whether an error is of a path with a part longer than a file name; Spark does not say so."""
    parts = (part for path in _PATHS.findall(text) for part in path.split("/"))
    return any(len(part.encode()) > _MOST_NAME_BYTES for part in parts)
