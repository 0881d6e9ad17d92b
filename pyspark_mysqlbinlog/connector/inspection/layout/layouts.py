"""The layout of each type of event, as the names of its fields in order.

A type that has no layout here is shown with its header and an unnamed body. Layouts are those of
libbinlogevents (control_events.h, statement_events.h, rows_event.h) and of MariaDB's log_event.h;
rows have their own module.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

from pyspark_mysqlbinlog.connector.inspection.layout.fields import FieldReader
from pyspark_mysqlbinlog.connector.inspection.literals import name_text, printable
from pyspark_mysqlbinlog.decoder.events.field_types import (
    METADATA_LENGTHS,
    describe_field,
    field_type_name,
)
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.messages import FormatDescription

__all__ = ["LAYOUTS", "Layout", "bits_text", "column_names", "flags_text"]

Layout = Callable[[FieldReader], None]

_SHOWN_TEXT = 200


def flags_text(value: int, names: dict[int, str]) -> str:
    """Return the names of the flags that are set."""
    known = [name for bit, name in names.items() if value & bit]
    rest = value & ~sum(names)
    return " ".join([*known, *([f"0x{rest:x}"] if rest else [])]) or "none"


def bits_text(bitmap: bytes, names: list[str]) -> str:
    """Return the names of the columns whose bits are set, low bit first."""
    chosen = [name for at, name in enumerate(names) if bitmap[at >> 3] >> (at & 7) & 1]
    if len(chosen) == len(names) > 1:
        return f"all {len(names)} columns"
    return ", ".join(chosen) or "none"


def column_names(count: int) -> list[str]:
    return [f"@{at + 1}" for at in range(count)]


def _statement(reader: FieldReader, size: int) -> None:
    text = reader.take("statement", size).decode("utf-8", "replace")
    if size:
        shown = printable(text[:_SHOWN_TEXT])
        reader.explain(shown + ("…" if len(text) > _SHOWN_TEXT else ""))


# --- statements

# Status variables of a QUERY: name, and size; None where a length byte precedes the value.
_STATUS: dict[int, tuple[str, int | None]] = {
    0: ("flags2", 4),
    1: ("sql_mode", 8),
    3: ("auto_increment_increment, auto_increment_offset", 4),
    4: ("collations of client, connection and server", 6),
    5: ("time_zone", None),
    6: ("catalog", None),
    7: ("lc_time_names", 2),
    8: ("collation_database", 2),
    9: ("table_map_for_update", 8),
    10: ("source data written", 4),
    13: ("microseconds", 3),
    16: ("explicit_defaults_for_timestamp", 1),
    17: ("xid of the DDL", 8),
    18: ("default_collation_for_utf8mb4", 2),
    19: ("sql_require_primary_key", 1),
    20: ("default_table_encryption", 1),
    128: ("microseconds (MariaDB)", 3),
    129: ("xid (MariaDB)", 8),
}
_TEXTS = (5, 6)
# The names of the databases that a statement changes; more than 16 have only this count.
_UPDATED_DATABASES, _OVER_MAX_DATABASES = 12, 254
_INVOKER = 11


def _query(reader: FieldReader) -> None:
    _query_head(reader, loads_data=False)


def _execute_load_query(reader: FieldReader) -> None:
    _query_head(reader, loads_data=True)


def _query_head(reader: FieldReader, *, loads_data: bool) -> None:
    reader.uint("thread id", 4)
    reader.uint("execution time", 4)
    reader.explain(f"{reader.fields[-1].meaning} s")
    database = reader.uint("length of the database", 1)
    reader.uint("error code", 2)
    variables = reader.uint("length of the status variables", 2)
    if loads_data:
        reader.uint("file id", 4)
        reader.uint("begin of the file name in the statement", 4)
        reader.uint("end of the file name in the statement", 4)
        reader.uint("handling of duplicates", 1)
    reader.section = "status variables"
    end = reader.pos + variables
    while reader.pos < end:
        if not _status_variable(reader):
            reader.take("of unknown kind", end - reader.pos)
    reader.section = "body"
    reader.text("database", database)
    reader.take("end of the database", 1)
    _statement(reader, reader.remaining)


def _status_variable(reader: FieldReader) -> bool:
    """Read one status variable; return False after the code of an unknown one."""
    code = reader.uint("code", 1)
    if code == _UPDATED_DATABASES:
        reader.explain("12 = updated databases")
        count = reader.uint("number of databases", 1)
        for _ in range(0 if count >= _OVER_MAX_DATABASES else count):
            reader.nul_terminated("database")
        return True
    if code == _INVOKER:
        reader.explain("11 = invoker")
        for name in ("user", "host"):
            reader.text(name, reader.uint(f"length of the {name}", 1))
        return True
    if code not in _STATUS:
        return False
    name, size = _STATUS[code]
    reader.explain(f"{code} = {name}")
    if size is None:
        size = reader.uint("length", 1)
    if code in _TEXTS:
        reader.text(name, size)
    elif size > 4 and code == 4:
        for each in ("client", "connection", "server"):
            reader.uint(f"collation of the {each}", 2)
    else:
        reader.uint(name, size)
    return True


def _rows_query(reader: FieldReader) -> None:
    reader.uint("length modulo 256", 1)
    _statement(reader, reader.remaining)


def _annotate_rows(reader: FieldReader) -> None:
    _statement(reader, reader.remaining)


_INTVARS = {1: "LAST_INSERT_ID", 2: "INSERT_ID"}


def _intvar(reader: FieldReader) -> None:
    code = reader.uint("type", 1)
    reader.explain(f"{code} = {_INTVARS.get(code, 'unknown')}")
    reader.uint("value", 8)


def _rand(reader: FieldReader) -> None:
    reader.uint("seed 1", 8)
    reader.uint("seed 2", 8)


def _user_var(reader: FieldReader) -> None:
    reader.text("name", reader.uint("length of the name", 4))
    if reader.uint("is NULL", 1):
        return
    reader.uint("type", 1)
    reader.uint("collation", 4)
    reader.take("value", reader.uint("length of the value", 4))
    if reader.remaining:
        reader.uint("flags", 1)


# --- transactions


def _xid(reader: FieldReader) -> None:
    reader.uint("xid", 8)


_LOGICAL_CLOCK = 2
_HAS_ORIGINAL_TIME = 1 << 55
_HAS_ORIGINAL_VERSION = 1 << 31
_GTID_FLAGS = {0x01: "MAY_HAVE_SBR"}


def _gtid(reader: FieldReader) -> None:
    value = reader.uint("flags", 1)
    reader.explain(flags_text(value, _GTID_FLAGS))
    reader.take_as("uuid of the source", 16, lambda raw: str(UUID(bytes=raw)))
    reader.uint("number", 8)
    if not reader.remaining:
        return
    # 5.7 and later.
    if reader.uint("type of the logical clock", 1) != _LOGICAL_CLOCK:
        return
    reader.uint("last committed", 8)
    reader.uint("sequence number", 8)
    if not reader.remaining:
        return
    # 8.0 and later. The highest bit says that another value follows.
    time = reader.uint("time of the commit", 7)
    reader.explain(_micros_text(time & ~_HAS_ORIGINAL_TIME))
    if time & _HAS_ORIGINAL_TIME:
        reader.explain(_micros_text(reader.uint("time of the commit at the source", 7)))
    reader.lenenc("length of the transaction")
    version = reader.uint("version of the server", 4)
    reader.explain(version & ~_HAS_ORIGINAL_VERSION)
    if version & _HAS_ORIGINAL_VERSION:
        reader.uint("version of the source", 4)
    if reader.remaining:
        reader.uint("ticket of the commit group", 8)


def _micros_text(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros / 1_000_000, UTC):%Y-%m-%d %H:%M:%S.%f} UTC"


# Fields of a GTID_TAGGED, and whether the number has a sign.
_TAGGED_FIELDS = {
    0: ("flags", False),
    2: ("number", True),
    4: ("last committed", True),
    5: ("sequence number", True),
    6: ("time of the commit", False),
    7: ("time of the commit at the source", False),
    8: ("length of the transaction", False),
    9: ("version of the server", False),
    10: ("version of the source", False),
    11: ("ticket of the commit group", False),
}
_TAGGED_UUID, _TAGGED_TAG = 1, 3
_TAGGED_TIMES = (6, 7)


def _gtid_tagged(reader: FieldReader) -> None:
    reader.varlen("version of the serialization")
    reader.varlen("length of the body")
    reader.varlen("last field that a reader must know")
    while reader.remaining:
        field = reader.varlen("field")
        if field == _TAGGED_UUID:
            reader.explain("1 = uuid of the source")
            uuid = bytes(reader.varlens("uuid of the source", 16))
            reader.explain(UUID(bytes=uuid))
        elif field == _TAGGED_TAG:
            reader.explain("3 = tag")
            reader.text("tag", reader.varlen("length of the tag"))
        elif field in _TAGGED_FIELDS:
            name, is_signed = _TAGGED_FIELDS[field]
            reader.explain(f"{field} = {name}")
            value = reader.varlen(name)
            if is_signed:
                # Signed numbers alternate: 0, -1, 1, -2, ….
                reader.explain(value >> 1 if not value & 1 else -(value >> 1) - 1)
            elif field in _TAGGED_TIMES:
                reader.explain(_micros_text(value))
        else:
            reader.rest("fields of unknown kinds")


def _previous_gtids(reader: FieldReader) -> None:
    head = reader.uint("number of sources", 8)
    is_tagged = head >> 56 == 1 and head & 0xFF == 1
    count = (head >> 8) & ((1 << 48) - 1) if is_tagged else head
    reader.explain(f"{count}{' (format with tags)' if is_tagged else ''}")
    for source in range(count):
        reader.section = f"source {source + 1}"
        reader.take_as("uuid", 16, lambda raw: str(UUID(bytes=raw)))
        if is_tagged:
            reader.text("tag", reader.varlen("length of the tag"))
        for _ in range(reader.uint("number of intervals", 8)):
            reader.uint("first number", 8)
            reader.uint("after the last number", 8)


def _xa_prepare(reader: FieldReader) -> None:
    reader.uint("one phase", 1)
    reader.uint("format id", 4)
    gtrid = reader.uint("length of gtrid", 4)
    bqual = reader.uint("length of bqual", 4)
    reader.take("gtrid", gtrid)
    reader.take("bqual", bqual)


_MARIADB_GTID_FLAGS = {
    0x01: "STANDALONE",
    0x02: "GROUP_COMMIT",
    0x04: "TRANSACTIONAL",
    0x08: "ALLOW_PARALLEL",
    0x10: "WAITED",
    0x20: "DDL",
    0x40: "PREPARED_XA",
    0x80: "COMPLETED_XA",
}


def _mariadb_gtid(reader: FieldReader) -> None:
    reader.uint("number", 8)
    reader.uint("domain", 4)
    flags = reader.uint("flags", 1)
    reader.explain(flags_text(flags, _MARIADB_GTID_FLAGS))
    reader.rest("more, by the flags")


def _mariadb_gtid_list(reader: FieldReader) -> None:
    head = reader.uint("number of GTIDs, and flags", 4)
    reader.explain(head & ((1 << 28) - 1))
    for _ in range(head & ((1 << 28) - 1)):
        reader.uint("domain", 4)
        reader.uint("server id", 4)
        reader.uint("number", 8)


# --- files


def _format_description(reader: FieldReader) -> None:
    reader.uint("binlog version", 2)
    version = reader.take("server version", 50).rstrip(b"\0")
    reader.explain(version.decode("latin-1"))
    created = reader.uint("created", 4)
    if not created:
        reader.explain("0 = not at a start of the server")
    reader.uint("header length", 1)
    # Only servers that support checksums write the algorithm; the checksum itself was removed.
    has_algorithm = FormatDescription.parse(reader.body + bytes(4)).carries_checksum
    reader.take("post-header lengths, by type", reader.remaining - has_algorithm)
    if has_algorithm:
        algorithm = reader.uint("checksum algorithm", 1)
        reader.explain(f"{algorithm} = {'CRC32' if algorithm == 1 else 'none'}")


def _rotate(reader: FieldReader) -> None:
    reader.uint("position in the next file", 8)
    reader.text("next file", reader.remaining)


def _binlog_checkpoint(reader: FieldReader) -> None:
    reader.text("file", reader.uint("length of the file name", 4))


def _incident(reader: FieldReader) -> None:
    reader.uint("incident", 2)
    if reader.remaining:
        reader.text("message", reader.uint("length of the message", 1))


_PAYLOAD_FIELDS = {1: "compressed bytes", 2: "algorithm", 3: "decompressed bytes"}


def _transaction_payload(reader: FieldReader) -> None:
    while (field := reader.lenenc("field")) != 0:
        name = _PAYLOAD_FIELDS.get(field)
        reader.explain(f"{field} = {name or 'unknown'}")
        size = reader.lenenc("length")
        if name is None:
            reader.take("value", size)
        else:
            value = reader.lenenc(name)
            if field == 2:
                reader.explain(f"{value} = {'zstd' if value == 0 else 'unknown'}")
    reader.explain("0 = end of the fields")
    reader.rest("zstd data")


# --- table maps

_TABLE_MAP_FLAGS = {
    0x0001: "BIT_LEN_EXACT",
    0x0002: "REFERRED_FK_DB",
    0x8000: "GENERATED_INVISIBLE_PRIMARY_KEY",
}
# Kinds of optional metadata (Table_map_event::Optional_metadata_field_type).
_OPTIONAL = {
    1: "signedness",
    2: "default charset",
    3: "column charsets",
    4: "column names",
    5: "SET labels",
    6: "ENUM labels",
    7: "geometry types",
    8: "primary key",
    9: "primary key with prefixes",
    10: "default charset of ENUM and SET",
    11: "charsets of ENUM and SET",
    12: "visibility",
    13: "vector dimensions",
}


def _table_map(reader: FieldReader) -> None:
    described = TableMap.parse(reader.body)
    reader.uint("table id", 6)
    reader.explain(described.table_id)
    reader.take_as(
        "flags", 2, lambda raw: flags_text(int.from_bytes(raw, "little"), _TABLE_MAP_FLAGS)
    )
    reader.section = "body"
    for what, name in (("database", described.database), ("table", described.table)):
        size = reader.uint(f"length of the {what}", 1)
        reader.take(what, size, name_text(name))
        reader.take(f"end of the {what}", 1)
    count = reader.lenenc("column count")
    names = column_names(count)
    for name, code in zip(names, described.types, strict=True):
        reader.take(f"type of {name}", 1, f"{code} = {field_type_name(code)}")
    reader.lenenc("length of the metadata")
    for name, code, metadata in zip(names, described.types, described.metadata, strict=True):
        reader.take(f"metadata of {name}", METADATA_LENGTHS[code], describe_field(code, metadata))
    size = (count + 7) // 8
    reader.take("can be NULL", size, bits_text(described.null_bitmap, names))
    reader.section = "optional metadata"
    while reader.remaining:
        kind = reader.uint("kind", 1)
        reader.explain(f"{kind} = {_OPTIONAL.get(kind, 'unknown')}")
        reader.take(_OPTIONAL.get(kind, "value"), reader.lenenc("length"))


LAYOUTS: dict[int, Layout] = {
    EventType.QUERY_EVENT: _query,
    EventType.EXECUTE_LOAD_QUERY_EVENT: _execute_load_query,
    EventType.ROTATE_EVENT: _rotate,
    EventType.INTVAR_EVENT: _intvar,
    EventType.RAND_EVENT: _rand,
    EventType.USER_VAR_EVENT: _user_var,
    EventType.FORMAT_DESCRIPTION_EVENT: _format_description,
    EventType.XID_EVENT: _xid,
    EventType.TABLE_MAP_EVENT: _table_map,
    EventType.INCIDENT_EVENT: _incident,
    EventType.ROWS_QUERY_LOG_EVENT: _rows_query,
    EventType.GTID_LOG_EVENT: _gtid,
    EventType.ANONYMOUS_GTID_LOG_EVENT: _gtid,
    EventType.GTID_TAGGED_LOG_EVENT: _gtid_tagged,
    EventType.PREVIOUS_GTIDS_LOG_EVENT: _previous_gtids,
    EventType.XA_PREPARE_LOG_EVENT: _xa_prepare,
    EventType.TRANSACTION_PAYLOAD_EVENT: _transaction_payload,
    EventType.MARIADB_ANNOTATE_ROWS_EVENT: _annotate_rows,
    EventType.MARIADB_BINLOG_CHECKPOINT_EVENT: _binlog_checkpoint,
    EventType.MARIADB_GTID_EVENT: _mariadb_gtid,
    EventType.MARIADB_GTID_LIST_EVENT: _mariadb_gtid_list,
}
