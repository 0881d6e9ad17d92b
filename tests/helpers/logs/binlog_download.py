"""Download of a live server's binlog files over the replication protocol."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from helpers.logs.live_log import client_of
from helpers.servers import Server
from pyspark_mysqlbinlog.protocol.binlog_files.files import MAGIC
from pyspark_mysqlbinlog.protocol.events import EventHeader, EventType

__all__ = ["download"]

# Events of these types without a position are artificial. The type matters: MariaDB 11.8 also
# sends rows events without a position.
_MADE = (EventType.ROTATE_EVENT, EventType.FORMAT_DESCRIPTION_EVENT)
_HEARTBEATS = (EventType.HEARTBEAT_LOG_EVENT, EventType.HEARTBEAT_LOG_EVENT_V2)


def download(server: Server, names: Iterable[str], folder: Path) -> None:
    """Write the named binlog files to `folder`, up to their current ends."""
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
                    break  # artificial: the events of the next file follow
