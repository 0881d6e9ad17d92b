"""A live server's log files on this disk, whole, wherever the server keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from helpers.logs.live_log import client_of
from helpers.servers import Server
from pyspark_mysqlbinlog.protocol.binlog_files.files import MAGIC
from pyspark_mysqlbinlog.protocol.events import EventHeader, EventType

__all__ = ["download"]

# Where they have no position, the server made them up; MariaDB 11.8 gives none to rows.
_MADE = (EventType.ROTATE_EVENT, EventType.FORMAT_DESCRIPTION_EVENT)
_HEARTBEATS = (EventType.HEARTBEAT_LOG_EVENT, EventType.HEARTBEAT_LOG_EVENT_V2)


def download(server: Server, names: Iterable[str], folder: Path) -> None:
    """Write files of the server's log under their names, as far as they go now."""
    for name in names:
        with client_of(server) as client, (folder / name).open("wb") as file:
            file.write(MAGIC)
            stream = client.dump(name, 4, blocking=False)
            while (raw := stream.next_event()) is not None:
                header = EventHeader.parse(raw)
                is_made = not header.log_pos and header.type in _MADE
                if not is_made and header.type not in _HEARTBEATS:
                    file.write(raw)
                elif header.type == EventType.ROTATE_EVENT and file.tell() > len(MAGIC):
                    break  # made up: what comes now is the next file
