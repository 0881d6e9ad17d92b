"""Processes of one session."""

from __future__ import annotations

from pathlib import Path

__all__ = ["session_members"]


def session_members(session: int) -> list[int]:
    """Return the processes of a session; none on a system without /proc."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # the process has just ended
        if int(fields[3]) == session:
            members.append(int(stat.parent.name))
    return members
