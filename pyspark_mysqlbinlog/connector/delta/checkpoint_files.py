"""A query's checkpoint, on local disk or wherever Spark reaches: how it is written, and read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException

from pyspark_mysqlbinlog.connector.delta.spark_sessions import is_classic
from pyspark_mysqlbinlog.errors import OffsetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["find_lines", "read_lines", "use_filesystem_checkpoint_manager", "write_line"]

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


@contextmanager
def use_filesystem_checkpoint_manager(spark: SparkSession, checkpoint: str) -> Iterator[None]:
    """A query that is started inside writes its checkpoint on local disk without other processes.

    Spark writes it by Hadoop's FileContext, which starts `chmod` and `readlink` for each file where
    Hadoop's native library is missing: some 80 ms a batch on two cores. By Hadoop's FileSystem,
    which is Spark's other way, files are written beside and renamed just the same. A setting that
    the session has stays.
    """
    if (
        not is_classic(spark)
        or _local(checkpoint) is None
        or spark.conf.get(_MANAGER, None) is not None
        or not _has_class(spark, _BY_FILE_SYSTEM)
    ):
        yield
        return
    spark.conf.set(_MANAGER, _BY_FILE_SYSTEM)
    try:
        yield
    finally:
        spark.conf.unset(_MANAGER)


def _has_class(spark: SparkSession, name: str) -> bool:
    """Whether the JVM has a class: another version of Spark may have it elsewhere."""
    given: Any = spark
    try:
        given._jvm.java.lang.Class.forName(name)
    except Py4JError:
        return False
    return True


def read_lines(spark: SparkSession, location: str) -> list[str]:
    """The lines of a file; OffsetError where it can't be read."""
    path = _local(location)
    if path is not None:
        try:
            return path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise OffsetError(f"{location} can't be read: {reason}") from None
    rows = spark.read.text(location, wholetext=True).collect()
    return str(rows[0][0]).splitlines() if rows else []


def find_lines(spark: SparkSession, location: str) -> list[str] | None:
    """The lines of a file; None where there is none."""
    path = _local(location)
    if path is not None:
        return read_lines(spark, location) if path.exists() else None
    try:
        return read_lines(spark, location) or None
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            return None
        raise


def write_line(spark: SparkSession, location: str, line: str) -> None:
    """Write a file of one line; where only Spark reaches it is a folder with such a file.

    On local disk it is there as a whole, or as it was before.
    """
    path = _local(location)
    if path is not None:
        new = path.with_name(f".{path.name}.new")
        new.write_text(line + "\n", encoding="utf-8")
        new.replace(path)
    else:
        spark.createDataFrame([(line,)], "value string").coalesce(1).write.mode("overwrite").text(
            location
        )


def _local(location: str) -> Path | None:
    parts = urlsplit(location)
    if parts.scheme not in {"", "file"}:
        return None
    return Path(unquote(parts.path) if parts.scheme else location)
