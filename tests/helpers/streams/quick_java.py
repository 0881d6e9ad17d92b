"""JVMs that start in half the time, with an archive of Spark's classes.

A JVM spends most of its first seconds on loading, checking and compiling some 15,000 classes of
Spark. Java can save them in their memory layout (class data sharing): a program that does what
tests do writes such an archive at its end, and every later JVM of the same Java and the same jars
maps it. An archive that does not fit is ignored.

Run as a program, this module creates the archive if there is none, which takes half a minute.
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

# A test's JVM ends before the second compiler and the collector's threads pay off. With only the
# first compiler, Java reserves 48 MB for code. Delta's jars fill them within half a minute, and
# after that new code is only interpreted.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
_FOLDER = Path(__file__).resolve().parents[3] / ".cache" / "java"
# Disables messages about single classes, and about an archive that does not fit.
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


@cache
def archive() -> Path | None:
    """Return the path of the archive for this Java and this PySpark; None without a Java."""
    java = _java()
    if java is None:
        return None
    # Without the environment: Java also prints the options that it takes from there.
    version = subprocess.run([java, "-version"], env={}, capture_output=True, check=False).stderr
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    parts = [str(Path(java).resolve()).encode(), version, *(str(jar).encode() for jar in jars)]
    return _FOLDER / f"spark-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:16]}.jsa"


def java_options() -> str:
    """Return the value of JDK_JAVA_OPTIONS for tests, with the archive if it exists."""
    kept = archive()
    if kept is None or not kept.is_file():
        return JAVA_OPTIONS
    return f'{JAVA_OPTIONS} "-XX:SharedArchiveFile={kept}" {_SILENT}'


def _collect(frame: DataFrame, _: int) -> None:
    frame.collect()


def _use_spark(folder: Path, java_options: str) -> None:
    """Do some of what tests do with Spark, and wait until its JVM has ended."""
    from helpers.streams.spark_session import make_spark

    # Not by the environment: the JVM that builds the command of Spark's JVM would use it, too.
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
