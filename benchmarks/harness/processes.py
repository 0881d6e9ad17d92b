"""A process and its descendants, as /proc shows them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Process", "cpu_seconds", "processes"]

_TICKS = os.sysconf("SC_CLK_TCK")
_KILOBYTE = 1024
# Indexes of the fields after the command's name in /proc/PID/stat.
_PARENT, _CPU = 1, slice(11, 15)


@dataclass(frozen=True, slots=True)
class Process:
    """One of them.

    Attributes
    ----------
    command : its command line.
    resident : bytes.
    cpu : seconds of all cores, its own and those of its children that were waited for.
    """

    command: str
    resident: int
    cpu: float


def processes(root: int) -> list[Process]:
    """A process and those below it."""
    found: dict[int, tuple[int, Process]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            lines = (entry / "status").read_text().splitlines()
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        fields = dict(line.split(":", 1) for line in lines)
        resident = int(fields.get("VmRSS", "0 kB").split()[0]) * _KILOBYTE
        cpu = sum(map(int, stat[_CPU])) / _TICKS
        found[int(entry.name)] = int(stat[_PARENT]), Process(command, resident, cpu)
    ours = {root}
    while more := {pid for pid, (parent, _) in found.items() if parent in ours} - ours:
        ours |= more
    return [found[pid][1] for pid in ours if pid in found]


def cpu_seconds(root: int) -> float:
    """What a process and those below it have used so far."""
    return sum(each.cpu for each in processes(root))
