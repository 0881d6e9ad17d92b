"""JVMs that start in half the time: Spark's classes, loaded once and kept in an archive.

A JVM spends most of its first seconds on loading, checking and compiling some 15,000 classes of
Spark's. Java can keep them as they lie in memory (class data sharing): a program that does what
tests do leaves such an archive behind at its end, and every later JVM of the same Java and the same
jars maps it. It is ignored where it does not fit.

Run as a program it makes the archive if there is none, which takes half a minute.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark
from pyspark.sql import DataFrame

__all__ = ["JAVA_OPTIONS", "archive", "java_options"]

# A test's JVM ends before its second compiler and its collector's threads have paid for themselves.
# With the first compiler alone Java keeps 48 MB for code; when they are full, which Delta's jars
# take half a minute for, all that is new is interpreted from then on.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
_FOLDER = Path(__file__).resolve().parents[3] / ".cache" / "java"
# What it says of single classes, or of an archive that does not fit, is nobody's concern.
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


@cache
def archive() -> Path | None:
    """Where the archive of this Java and this PySpark is or would be; None without a Java."""
    java = _java()
    if java is None:
        return None
    # Without the environment: Java repeats the options that it takes from there.
    version = subprocess.run([java, "-version"], env={}, capture_output=True, check=False).stderr
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    parts = [str(Path(java).resolve()).encode(), version, *(str(jar).encode() for jar in jars)]
    return _FOLDER / f"spark-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:16]}.jsa"


def java_options() -> str:
    """What tests put into JDK_JAVA_OPTIONS: with the archive, if it has been made."""
    kept = archive()
    if kept is None or not kept.is_file():
        return JAVA_OPTIONS
    return f'{JAVA_OPTIONS} "-XX:SharedArchiveFile={kept}" {_SILENT}'


def _collect(frame: DataFrame, _: int) -> None:
    frame.collect()


def _use_spark(folder: Path, java_options: str) -> None:
    """A little of what tests do with Spark; returns when its JVM has ended."""
    from helpers.streams.spark_session import make_spark

    # Not by the environment: the JVM that makes up the command of Spark's own would take it, too.
    spark = make_spark(**{"spark.driver.extraJavaOptions": java_options})
    spark.range(10).selectExpr("to_json(struct(*)) AS line", "id").orderBy("id").collect()
    spark.range(10).write.parquet(str(folder / "rows"))
    spark.read.parquet(str(folder / "rows")).toArrow()
    logs = Path(__file__).resolve().parents[2] / "data" / "binlogs57" / "numbers.*.binlog"
    for payload in ("json", "variant"):
        read = spark.read.format("mysqlbinlog").options(path=str(logs), payload=payload)
        read.load().collect()
    query = (
        spark.readStream.format("rate")
        .load()
        .writeStream.foreachBatch(_collect)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()
    gateway: Any = spark.sparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def main() -> None:
    kept = archive()
    if kept is None or kept.is_file():
        return
    kept.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=kept.parent) as folder:
        made = Path(folder) / "made.jsa"
        options = f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={made} {_SILENT}"
        _use_spark(Path(folder), options)
        made.replace(kept)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
