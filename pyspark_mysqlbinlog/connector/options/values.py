"""Parsers of option texts: durations, sizes, start points, server ids.

Each function returns the value or raises ValueError. The options model turns that into an error
that names the option and the expected form.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT
from pyspark_mysqlbinlog.errors import InvalidPositionError

__all__ = [
    "Earliest",
    "ExecutedGtids",
    "FilePosition",
    "HostPort",
    "Latest",
    "Place",
    "PlaceInBinlog",
    "Snapshot",
    "Timestamp",
    "parse_bool",
    "parse_conditions",
    "parse_duration",
    "parse_fraction",
    "parse_hosts",
    "parse_number",
    "parse_place",
    "parse_reload",
    "parse_server_ids",
    "parse_size",
]


@dataclass(frozen=True, slots=True)
class Latest:
    """The end of the binlog at the time of the request."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """The beginning of the oldest binlog file."""


@dataclass(frozen=True, slots=True)
class FilePosition:
    """A given transaction boundary: file name without folder, byte offset in the file."""

    file: str
    pos: int


@dataclass(frozen=True, slots=True)
class ExecutedGtids:
    """The boundary before which exactly the transactions of a set are logged."""

    executed: GtidSet


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The first transaction whose first event is not older; seconds since 1970 UTC."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The existing rows of the tables, then the end of the binlog."""


# The start points that are found in the binlog alone.
PlaceInBinlog = Latest | Earliest | FilePosition | Timestamp | Snapshot
Place = PlaceInBinlog | ExecutedGtids

# Without a port, it is that of the option `port`.
HostPort = tuple[str, int | None]

_GTID_PREFIX = "gtid:"

_NUMBER = re.compile(r"\d+", re.ASCII)
_FRACTION = re.compile(r"0?\.\d+|[01](\.0+)?", re.ASCII)

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", re.IGNORECASE | re.ASCII)
_DURATION_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE | re.ASCII)
_SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

# Anything that begins like a date is a time: no binlog file is named 2026-11-20T10.
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?", re.ASCII)
_FILE_POSITION = re.compile(r"([^/\\:]+):(\d+)", re.ASCII)

_NAME = re.compile(r"[\w.-]+", re.ASCII)

# A name or IPv4 address, or an IPv6 address in brackets; with or without a port. An IPv6 address
# alone needs no brackets, if no port follows it.
_HOST_PORT = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:,\s]+))(?::(\d{1,5}))?", re.ASCII)
_ADDRESS_6 = re.compile(r"[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*", re.IGNORECASE | re.ASCII)
_MAX_PORT = (1 << 16) - 1

_SERVER_IDS = re.compile(r"(\d+)(?:\s*-\s*(\d+))?", re.ASCII)
_MAX_SERVER_ID = (1 << 32) - 1


def parse_number(text: str) -> int:
    """Parse a plain decimal number without a sign."""
    if _NUMBER.fullmatch(text) is None:
        raise ValueError("no number")
    return int(text)


def parse_fraction(text: str) -> float:
    """Parse a decimal number from 0 to 1."""
    if _FRACTION.fullmatch(text) is None:
        raise ValueError("no fraction")
    return float(text)


def parse_duration(text: str) -> float:
    """Return the seconds of ``30s``, ``10m``, ``500ms``, ``1h`` or ``2d``. The unit is required."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError("no duration")
    seconds = float(found[1]) * _DURATION_UNITS[found[2].lower()]
    if seconds == float("inf"):
        raise ValueError("not finite")
    return seconds


def parse_size(text: str) -> int:
    """Return the bytes of ``64m``, ``1g``, ``100k`` (powers of 1024) or a plain number of bytes."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError("no size")
    return int(found[1]) * _SIZE_UNITS[found[2].lower()]


def parse_hosts(text: str) -> tuple[HostPort, ...]:
    """Return (host, port) of ``db1``, ``db1:3307``, ``[::1]:3307`` or a list of them."""
    found: list[HostPort] = []
    for part in text.split(","):
        address = part.strip()
        if _ADDRESS_6.fullmatch(address):
            found.append((address, None))
            continue
        match = _HOST_PORT.fullmatch(address)
        port = None if match is None or match[3] is None else int(match[3])
        if match is None or (port is not None and not 1 <= port <= _MAX_PORT):
            raise ValueError("no host")
        found.append((match[1] or match[2], port))
    if len(set(found)) != len(found):
        raise ValueError("a host twice")
    return tuple(found)


def parse_bool(text: str) -> bool:
    """Parse ``true`` or ``false``, as Spark's own options do."""
    try:
        return {"true": True, "false": False}[text.lower()]
    except KeyError:
        raise ValueError("neither true nor false") from None


def parse_place(text: str) -> Place:
    """Parse ``latest``, ``earliest``, ``snapshot``, ``FILE:POS``, ``gtid:SET`` or an ISO time.

    A time without a zone is in UTC.
    """
    word = text.lower()
    if word.startswith(_GTID_PREFIX):
        try:
            return ExecutedGtids(GtidSet.parse(text[len(_GTID_PREFIX) :]))
        except InvalidPositionError as error:
            raise ValueError(error.message) from None
    words: dict[str, Place] = {
        "latest": Latest(),
        "earliest": Earliest(),
        "snapshot": Snapshot(),
    }
    if word in words:
        return words[word]
    if _TIME.fullmatch(text):
        time = datetime.fromisoformat(text)
        return Timestamp((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    found = _FILE_POSITION.fullmatch(text)
    if found is None or int(found[2]) < FIRST_EVENT:
        raise ValueError("no start point")
    return FilePosition(found[1], int(found[2]))


def parse_conditions(text: str) -> dict[str, str]:
    """Return table -> condition of ``{"shop.orders": "created >= '2026-01-01'"}``."""
    value = json.loads(text, object_pairs_hook=_without_repeats)
    if not isinstance(value, dict) or not value:
        raise ValueError("no object")
    if not all(isinstance(each, str) and each.strip() for each in value.values()):
        raise ValueError("no condition")
    return {str(table): str(condition).strip() for table, condition in value.items()}


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def parse_reload(text: str) -> tuple[str, str]:
    """Return (ID, tables) of ``ID: TABLES``."""
    name, colon, tables = text.partition(":")
    if not colon or _NAME.fullmatch(name.strip()) is None or not tables.strip():
        raise ValueError("no ID and tables")
    return name.strip(), tables.strip()


def parse_server_ids(text: str) -> tuple[int, int]:
    """Return (lowest, highest), both included, of ``6000`` or ``6000-6100``."""
    found = _SERVER_IDS.fullmatch(text)
    if found is None:
        raise ValueError("no server id")
    low = int(found[1])
    high = int(found[2]) if found[2] is not None else low
    if not 1 <= low <= high <= _MAX_SERVER_ID:
        raise ValueError("not in the range of server ids")
    return low, high
