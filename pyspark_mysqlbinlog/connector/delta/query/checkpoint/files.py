"""Reads and writes files of a query's checkpoint, on local disk or through Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyspark.errors import AnalysisException

from pyspark_mysqlbinlog.errors import OffsetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "find_lines",
    "hadoop",
    "local_path",
    "read_lines",
    "remove",
    "replace_text",
    "write_line",
]


def read_lines(spark: SparkSession, location: str) -> list[str]:
    """Return the lines of a file; OffsetError if it cannot be read."""
    path = local_path(location)
    if path is not None:
        try:
            return path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise OffsetError(f"{location} cannot be read: {reason}") from None
    rows = spark.read.text(location, wholetext=True).collect()
    return str(rows[0][0]).splitlines() if rows else []


def find_lines(spark: SparkSession, location: str) -> list[str] | None:
    """Return the lines of a file; None if it does not exist."""
    path = local_path(location)
    if path is not None:
        return read_lines(spark, location) if path.exists() else None
    try:
        return read_lines(spark, location) or None
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            return None
        raise


def write_line(spark: SparkSession, location: str, line: str) -> None:
    """Write a file of one line; through Spark, a folder that contains such a file.

    On local disk the file is replaced atomically.
    """
    path = local_path(location)
    if path is not None:
        new = path.with_name(f".{path.name}.new")
        new.write_text(line + "\n", encoding="utf-8")
        new.replace(path)
    else:
        spark.createDataFrame([(line,)], "value string").coalesce(1).write.mode("overwrite").text(
            location
        )


def replace_text(spark: SparkSession, location: str, text: str) -> None:
    """Replace a file that Spark wrote; on local disk atomically."""
    path = local_path(location)
    if path is not None:
        # Without the checksum file, Spark does not verify the new contents.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        new = path.with_name(f".{path.name}.new")
        new.write_text(text, encoding="utf-8")
        new.replace(path)
        return
    file, files = hadoop(spark, location)
    written = files.create(file, True)
    written.write(bytearray(text.encode()))
    written.close()


def remove(spark: SparkSession, location: str) -> None:
    """Remove a file that Spark wrote."""
    path = local_path(location)
    if path is not None:
        for each in (path, path.with_name(f".{path.name}.crc")):
            each.unlink(missing_ok=True)
        return
    file, files = hadoop(spark, location)
    files.delete(file, False)


def hadoop(spark: SparkSession, location: str) -> tuple[Any, Any]:
    """Return a location as Hadoop's Path, and its FileSystem; only in a classic session."""
    given: Any = spark
    path = given._jvm.org.apache.hadoop.fs.Path(location)
    return path, path.getFileSystem(given._jsc.hadoopConfiguration())


def local_path(location: str) -> Path | None:
    """Return the path of a location on local disk; None if it is elsewhere."""
    parts = urlsplit(location)
    if parts.scheme not in {"", "file"}:
        return None
    return Path(unquote(parts.path) if parts.scheme else location)
