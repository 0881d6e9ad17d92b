"""JVMs that start in half the time, and write a query's checkpoint without processes.

A JVM spends most of its first seconds on loading, checking and compiling some 15,000 classes of
Spark. Java can save them in their memory layout (class data sharing): a program that does what
tests do writes such an archive at its end, and every later JVM of the same Java and the same jars
maps it. An archive that does not fit is ignored.

Spark writes some six files for each batch of a query, and Hadoop runs `chmod` for each: a tenth of
the CPU time of tests with queries. A class of `java/` replaces Hadoop's local file system, if there
is a compiler for it. FileContext, which Spark uses by default for checkpoints, is left as it is.

Run as a program, this module creates what does not exist yet, which takes half a minute.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark
from pyspark.sql import DataFrame

__all__ = ["JAVA_OPTIONS", "archive", "java_environment", "java_options"]

# A test's JVM ends before the second compiler and the collector's threads pay off. With only the
# first compiler, Java reserves 48 MB for code. Delta's jars fill them within half a minute, and
# after that new code is only interpreted.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
_FOLDER = Path(__file__).resolve().parents[3] / ".cache" / "java"
_FILE_SYSTEM = Path(__file__).parent / "java" / "QuickLocalFileSystem.java"
# Disables messages about single classes, and about an archive that does not fit.
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def _tool(name: str) -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / name) if home else name)


@cache
def archive() -> Path | None:
    """Return the path of the archive for this Java and this PySpark; None without a Java."""
    java = _tool("java")
    if java is None:
        return None
    # Without the environment: Java also prints the options that it takes from there.
    release = subprocess.run([java, "-version"], env={}, capture_output=True, check=False).stderr
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    parts = [str(Path(java).resolve()).encode(), release, *(str(jar).encode() for jar in jars)]
    return _FOLDER / f"spark-{_digest(*parts)}.jsa"


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"|".join(parts)).hexdigest()[:16]


def _file_system_classes() -> Path:
    """Return the folder of the compiled file system, and of Hadoop's setting that selects it."""
    return _FOLDER / f"files-{_digest(version('pyspark').encode(), _FILE_SYSTEM.read_bytes())}"


def java_options() -> str:
    """Return the value of JDK_JAVA_OPTIONS for tests, with the archive if it exists."""
    kept = archive()
    if kept is None or not kept.is_file():
        return JAVA_OPTIONS
    return f'{JAVA_OPTIONS} "-XX:SharedArchiveFile={kept}" {_SILENT}'


def java_environment() -> dict[str, str]:
    """Return environment variables for the JVMs of tests; those of Spark that are set are kept."""
    environment = {"JDK_JAVA_OPTIONS": java_options()}
    classes = _file_system_classes()
    # Both are after Spark's jars on the class path, as the archive requires.
    names = ("HADOOP_CONF_DIR", "SPARK_DIST_CLASSPATH")
    if classes.is_dir() and not any(map(os.environ.get, names)):
        environment |= dict.fromkeys(names, str(classes))
    return environment


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


def _make_archive() -> None:
    kept = archive()
    if kept is None or kept.is_file():
        return
    with TemporaryDirectory(dir=kept.parent) as folder:
        made = Path(folder) / "made.jsa"
        options = f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={made} {_SILENT}"
        _use_spark(Path(folder), options)
        made.replace(kept)


def _compile_file_system() -> None:
    kept, compiler = _file_system_classes(), _tool("javac")
    if compiler is None or kept.is_dir():
        return
    jars = Path(pyspark.__file__).parent / "jars"
    with TemporaryDirectory(dir=kept.parent) as folder:
        made = Path(folder) / "made"
        made.mkdir()
        command = [compiler, "-nowarn", "-d", str(made), "-cp", f"{jars}/*", str(_FILE_SYSTEM)]
        subprocess.run(command, check=True)
        setting = f"<name>fs.file.impl</name><value>{_FILE_SYSTEM.stem}</value>"
        (made / "core-site.xml").write_text(
            f"<configuration><property>{setting}</property></configuration>\n"
        )
        made.replace(kept)


def main() -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    _make_archive()
    _compile_file_system()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
