"""What a figure was measured on: the machine, how busy it was before, the versions."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from helpers.servers import Server

__all__ = ["describe"]

_PACKAGES = ("pyspark-mysqlbinlog", "pyspark", "pyarrow", "pymysql", "mysql-replication")


def describe(server: Server, libraries: dict[str, str], load: float) -> dict[str, Any]:
    """libraries : versions of the Java peers, by name; load : before anything was begun."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "load_before": round(load, 2),
        "versions": {
            "python": platform.python_version(),
            "java": _java(),
            "mysql": server.version(),
            **{name: version(name) for name in _PACKAGES},
            **libraries,
        },
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _java() -> str:
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    return told.stderr.split('"')[1]
