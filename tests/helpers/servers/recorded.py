"""A real server that streams the recorded 5.7 binlogs.

MySQL 5.6 with GTIDs on serves any files that its index lists, including those of a 5.7 server. Each
recorded file ends with a ROTATE that names its successor. So each is served under its original
name: then the names in the stream match the index.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from helpers.parity.decoding import CAPTURED
from helpers.servers.mysql56 import MySQL56Server

__all__ = ["captured_files", "serve_binlogs"]

# The last event of a rotated file: 19 bytes of header (not matched), 8 of position (always 4), the
# next name, CRC32 or nothing.
_ROTATE_TAIL = re.compile(rb"\x04\0{7}(mysql-bin)\.(\d{6})(?:.{4})?\Z", re.DOTALL)


def captured_files(scenario: str) -> list[Path]:
    """Return the scenario's binlog files in order."""
    files = sorted(CAPTURED.glob(f"{scenario}.*.binlog"))
    if not files:
        raise FileNotFoundError(f"no captured logs of {scenario!r} in {CAPTURED}")
    return files


def original_name(file: Path) -> str:
    """Return a recorded file's name on its server: the one before the name in its ROTATE."""
    found = _ROTATE_TAIL.search(file.read_bytes()[-64:])
    if found is None:
        raise ValueError(f"{file.name} does not end with a ROTATE event to mysql-bin.NNNNNN")
    return f"{found[1].decode()}.{int(found[2]) - 1:06d}"


def serve_binlogs(files: Sequence[Path], options: Sequence[str] = ()) -> MySQL56Server:
    """Return a started server whose binlogs begin with `files`; stop it, or use it in a `with`.

    Its index lists them under their original names; the server's own first file follows.
    """
    server = MySQL56Server(
        ["--gtid-mode=ON", "--enforce-gtid-consistency", "--log-slave-updates", *options]
    )
    server.prepare()
    assert server.datadir is not None
    names = [original_name(file) for file in files]
    if len(set(names)) != len(names):
        server.stop()
        raise ValueError(f"files of one server were expected, found names twice: {names}")
    for file, name in zip(files, names, strict=True):
        shutil.copyfile(file, server.datadir / name)
    (server.datadir / "mysql-bin.index").write_text("".join(f"./{name}\n" for name in names))
    return server.start()
