"""Parsers for all events except table maps and rows, from body to value.

Each parser takes the event's body without header and checksum, and raises MalformedEventError if it
is cut short. If the parsed layout is complete, no bytes may be left over. GTID events grow with
server versions, so only their beginning is read. Layouts follow libbinlogevents (control_events.h,
statement_events.h) of MySQL 5.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from uuid import UUID

from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.checksum import (
    CHECKSUM_LENGTH,
    ChecksumAlgorithm,
    checksum_algorithm,
)
from pyspark_mysqlbinlog.protocol.wire import Reader

__all__ = [
    "FormatDescription",
    "Gtid",
    "Incident",
    "MariadbGtid",
    "Query",
    "Rotate",
    "XaPrepare",
    "is_server_made",
    "parse_rows_query",
    "parse_server_version",
    "xid_text",
]

_MARIADB_STANDALONE_FLAG = 0x01
# FL_PREPARED_XA: the transaction ends with XA_PREPARE (MariaDB 10.5 and later).
_MARIADB_PREPARED_XA_FLAG = 0x40


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """FORMAT_DESCRIPTION (15): the format of the rest of the file."""

    binlog_version: int
    server_version: str
    created: int
    header_length: int
    post_header_lengths: bytes
    checksum: ChecksumAlgorithm

    @classmethod
    def parse(cls, body: bytes) -> FormatDescription:
        """Parse a body with its checksum, because only the body shows whether it has one.

        ::

            binlog_version u16 | server_version char[50] | created u32 | header_length u8
            | post_header_lengths u8[types] | checksum algorithm u8 | checksum 4 bytes

        The last two exist if the server supports checksums: from 5.6.1, MariaDB 5.3.
        """
        reader = Reader(body, "FORMAT_DESCRIPTION")
        binlog_version = reader.u16()
        reader.take(_VERSION_LENGTH)
        server_version = parse_server_version(body)
        created = reader.u32()
        header_length = reader.u8()
        rest = reader.rest()
        checksum = ChecksumAlgorithm.OFF
        if _knows_checksums(server_version):
            if len(rest) < 1 + CHECKSUM_LENGTH:
                raise MalformedEventError(
                    f"FORMAT_DESCRIPTION of server {server_version} ends before its checksum"
                    f" algorithm: found {len(rest)} bytes after the header length"
                )
            checksum = checksum_algorithm(rest[-1 - CHECKSUM_LENGTH])
            rest = rest[: -1 - CHECKSUM_LENGTH]
        return cls(binlog_version, server_version, created, header_length, rest, checksum)

    @property
    def carries_checksum(self) -> bool:
        """Whether this event itself ends in a CRC32, even if the other events have none."""
        return _knows_checksums(self.server_version)


_VERSION_LENGTH = 50


def begins_at_start(body: bytes) -> bool:
    """Whether a FORMAT_DESCRIPTION begins a file because the server was started."""
    return any(body[52:56])


def parse_server_version(body: bytes) -> str:
    """Return the version in a FORMAT_DESCRIPTION, such as ``5.7.41-log``."""
    return body[2 : 2 + _VERSION_LENGTH].rstrip(b"\x00").decode("latin-1")


def _knows_checksums(server_version: str) -> bool:
    numbers = []
    for part in server_version.split("-", maxsplit=1)[0].split(".")[:3]:
        digits = "".join(c for c in part if c.isdecimal())
        numbers.append(int(digits or 0))
    since = (5, 3, 0) if "mariadb" in server_version.lower() else (5, 6, 1)
    return tuple(numbers) >= since


@dataclass(frozen=True, slots=True)
class Rotate:
    """ROTATE (4): the binlog continues in another file."""

    pos: int
    file: str

    @classmethod
    def parse(cls, body: bytes) -> Rotate:
        """pos u64 | file

        The name extends to the end of the event. MalformedEventError if it is not UTF-8.
        """
        reader = Reader(body, "ROTATE")
        pos, file = reader.u64(), reader.rest()
        try:
            return cls(pos, file.decode("utf-8"))
        except UnicodeDecodeError:
            raise MalformedEventError(
                f"ROTATE contains a file name that is not UTF-8: 0x{file.hex()}"
            ) from None


@dataclass(frozen=True, slots=True)
class Query:
    """QUERY (2): BEGIN, COMMIT, DDL, or DML in statement format.

    Attributes
    ----------
    database : the default database; empty if there was none.
    sql_mode : of the session, as the server's bits; 0 if the event does not contain it.
    collation_client : id of a collation of the session's character_set_client, the encoding of the
        statement; None if the event does not contain it.
    collation_connection : id of the session's collation_connection; the server converts the
        statement's literals to it; None likewise.
    collation_server : id of the session's collation_server; None likewise.
    sql : the statement, decoded as UTF-8; invalid bytes are kept as surrogate escapes.
    is_applied : False for the beginning of an ALTER that MariaDB logs in two phases
        (binlog_alter_two_phase), and for its ROLLBACK; its COMMIT repeats the statement.
    """

    thread_id: int
    error_code: int
    database: str
    sql_mode: int
    collation_client: int | None
    collation_connection: int | None
    collation_server: int | None
    sql: str
    is_applied: bool = True

    @classmethod
    def parse(cls, body: bytes, *, loads_data: bool = False) -> Query:
        """Parse a QUERY, or an EXECUTE_LOAD_QUERY (18), whose head is 13 bytes longer.

        ::

        thread_id u32 | exec_time u32 | database length u8 | error_code u16
        | status variables length u16 | status variables | database | 0x00 | statement
        """
        reader = Reader(body, "QUERY")
        thread_id, _, database_length, error_code, variables_length = _QUERY_HEAD.unpack(
            reader.take(_QUERY_HEAD.size)
        )
        if loads_data:  # file id u32 | start and end of the file's name u32, u32 | flags u8
            reader.take(13)
        variables = reader.take(variables_length)
        database = reader.nul_terminated(database_length).decode("utf-8", "surrogateescape")
        sql = reader.rest().decode("utf-8", "surrogateescape")
        is_applied = _ALTER_PHASE_CODE not in variables or _is_applied(variables)
        return cls(thread_id, error_code, database, *_session(variables), sql, is_applied)


_QUERY_HEAD = Struct("<IIBHH")
_SQL_MODE_CODE = 1
_CHARSET_CODE = 4
# Status variables by code: their lengths, or None where a length byte precedes the value (and, for
# the old catalog code 2, a 0x00 follows it). The server writes them in a fixed order.
_STATUS_LENGTHS: dict[int, int | None] = {
    0: 4,  # Q_FLAGS2_CODE
    _SQL_MODE_CODE: 8,
    2: None,  # Q_CATALOG_CODE
    3: 4,  # Q_AUTO_INCREMENT
    _CHARSET_CODE: 6,
    5: None,  # Q_TIME_ZONE_CODE
    6: None,  # Q_CATALOG_NZ_CODE
    # After the charsets:
    7: 2,  # Q_LC_TIME_NAMES_CODE
    8: 2,  # Q_CHARSET_DATABASE_CODE
    9: 8,  # Q_TABLE_MAP_FOR_UPDATE_CODE
    10: 4,  # Q_MASTER_DATA_WRITTEN_CODE
    128: 3,  # Q_HRNOW of MariaDB
    129: 8,  # Q_XID of MariaDB
}
# A variable of MariaDB (11.8.9 writes it): a count u8, and that many pairs of u16.
_CHARACTER_SET_COLLATIONS_CODE = 131
# The phase of MariaDB's ALTER, its last variable: flags u8.
_ALTER_PHASE_CODE = 130
_ALTER_BEGINS, _ALTER_IS_ROLLED_BACK = 2, 8
_KNOWN_VARIABLES = {*_STATUS_LENGTHS, _CHARACTER_SET_COLLATIONS_CODE, _ALTER_PHASE_CODE}


@lru_cache(maxsize=256)
def _session(variables: bytes) -> tuple[int, int | None, int | None, int | None]:
    """Return sql_mode and the ids of the client's, the connection's and the server's collation.

    Q_SQL_MODE_CODE is u64; Q_CHARSET_CODE is client, connection and server collation, u16 each.
    Cached, because they are the same for every transaction of a session.
    """
    sql_mode = 0
    for code, reader in _status_variables(variables):
        if code == _CHARSET_CODE:
            return sql_mode, reader.u16(), reader.u16(), reader.u16()
        if code == _SQL_MODE_CODE:
            sql_mode = reader.u64()
        else:
            _skip_variable(code, reader)
    return sql_mode, None, None, None


def _status_variables(variables: bytes) -> Iterator[tuple[int, Reader]]:
    """Yield the code of each variable, up to an unknown one, with a reader at its value.

    The caller reads or skips the value.
    """
    reader = Reader(variables, "QUERY status variables")
    while reader.remaining and (code := reader.u8()) in _KNOWN_VARIABLES:
        yield code, reader


def _skip_variable(code: int, reader: Reader) -> None:
    if code == _ALTER_PHASE_CODE:
        reader.rest()
    elif code == _CHARACTER_SET_COLLATIONS_CODE:
        reader.take(4 * reader.u8())
    else:
        length = _STATUS_LENGTHS[code]
        reader.take(reader.u8() + (code == 2) if length is None else length)


def _is_applied(variables: bytes) -> bool:
    """Whether these are not of an ALTER that only begins, or is rolled back (measured on 10.11)."""
    for code, reader in _status_variables(variables):
        if code == _ALTER_PHASE_CODE:
            return not reader.u8() & (_ALTER_BEGINS | _ALTER_IS_ROLLED_BACK)
        _skip_variable(code, reader)
    return True


@lru_cache
def _uuid(data: bytes) -> str:
    """Spell a server's UUID; cached, because a log has those of few servers."""
    return str(UUID(bytes=data))


@dataclass(frozen=True, slots=True)
class Gtid:
    """GTID (33), ANONYMOUS_GTID (34) and GTID_TAGGED (42): identifies the transaction after it.

    Attributes
    ----------
    tag : empty in the first two.
    """

    uuid: str
    number: int
    tag: str = ""

    @classmethod
    def parse(cls, body: bytes) -> Gtid:
        """flags u8 | uuid 16 bytes | number i64; 5.7 appends logical clocks, which are not used."""
        reader = Reader(body, "GTID")
        reader.u8()
        uuid = _uuid(reader.take(16))
        return cls(uuid, reader.u64())

    @classmethod
    def parse_tagged(cls, body: bytes) -> Gtid:
        """Parse the body of a GTID_TAGGED (8.3 and later).

        It is a message of MySQL's serialization library (libs/mysql/serialization), in which every
        number is one of `Reader.varlen`. Field numbers increase; the rest is not used::

            version | bytes of the body | last field that a reader must know
            | 0 flags | 1 uuid[16] | 2 number (signed) | 3 tag length, tag | …
        """
        reader = Reader(body, "GTID_TAGGED")
        head = (reader.varlen(), reader.varlen(), reader.varlen())
        if head[0] != 1 or head[1] != len(body) or head[2] > _LAST_GTID_FIELD:
            raise MalformedEventError(
                f"GTID_TAGGED of {len(body)} bytes begins with version {head[0]}, {head[1]} bytes"
                f" and required field {head[2]}; expected 1, {len(body)} and at most"
                f" {_LAST_GTID_FIELD}"
            )
        _expect_field(reader, 0)
        reader.varlen()
        _expect_field(reader, 1)
        uuid = [reader.varlen() for _ in range(16)]
        _expect_field(reader, 2)
        number = reader.varlen()
        _expect_field(reader, 3)
        tag = reader.take(reader.varlen())
        if max(uuid) > 0xFF or number & 1 or not tag.isascii():
            raise MalformedEventError(
                f"GTID_TAGGED has an invalid uuid, number or tag: {uuid}, {number}, {tag!r}"
            )
        # Signed numbers alternate: 0, -1, 1, -2, ….
        return cls(_uuid(bytes(uuid)), number >> 1, tag.decode())

    def __str__(self) -> str:
        return f"{self.uuid}:{self.tag}:{self.number}" if self.tag else f"{self.uuid}:{self.number}"


# The last field that 9.7.4 defines: the ticket of a group commit.
_LAST_GTID_FIELD = 11


def _expect_field(reader: Reader, number: int) -> None:
    found = reader.varlen()
    if found != number:
        raise MalformedEventError(f"GTID_TAGGED has field {found}, expected field {number}")


@dataclass(frozen=True, slots=True)
class XaPrepare:
    """XA_PREPARE (38): the end of an XA transaction's events; one_phase also commits it."""

    one_phase: bool
    xid: str

    @classmethod
    def parse(cls, body: bytes) -> XaPrepare:
        """one_phase u8 | format id u32 | gtrid length u32 | bqual length u32 | gtrid, bqual"""
        reader = Reader(body, "XA_PREPARE")
        one_phase = reader.u8() != 0
        format_id, gtrid_length, bqual_length = reader.u32(), reader.u32(), reader.u32()
        gtrid, bqual = reader.take(gtrid_length), reader.take(bqual_length)
        reader.check_end()
        return cls(one_phase, xid_text(gtrid, bqual, format_id))


def xid_text(gtrid: bytes, bqual: bytes, format_id: int) -> str:
    """Return the spelling in which XA_PREPARE events and XA statements of one xid are equal.

    It is the spelling that 5.7 writes to the binlog: ``X'6162',X'',1``.
    """
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{format_id}"


@dataclass(frozen=True, slots=True)
class Incident:
    """INCIDENT (26): the server reports that events may be missing here."""

    code: int
    message: str

    @classmethod
    def parse(cls, body: bytes) -> Incident:
        """code u16 | message length u8 | message

        A body that ends after the code has no message. MalformedEventError for trailing bytes.
        """
        reader = Reader(body, "INCIDENT")
        code = reader.u16()
        message = reader.take(reader.u8()).decode("utf-8", "replace") if reader.remaining else ""
        reader.check_end()
        return cls(code, message)


@dataclass(frozen=True, slots=True)
class MariadbGtid:
    """MARIADB_GTID (162): the transaction's identifier, which also replaces BEGIN.

    Attributes
    ----------
    begins : whether it replaces BEGIN, and is not that of a standalone statement.
    prepares : whether it replaces XA START.
    """

    domain: int
    number: int
    begins: bool
    prepares: bool

    @classmethod
    def parse(cls, body: bytes) -> MariadbGtid:
        """number u64 | domain u32 | flags u8 | more, which is not used"""
        reader = Reader(body, "MARIADB_GTID")
        number, domain, flags = reader.u64(), reader.u32(), reader.u8()
        return cls(
            domain,
            number,
            not flags & _MARIADB_STANDALONE_FLAG,
            bool(flags & _MARIADB_PREPARED_XA_FLAG),
        )


def is_server_made(sql: str) -> bool:
    """Whether the server generated the statement itself: ``/* generated by server … */``."""
    return "/* generated by server" in sql[-200:]


def parse_rows_query(body: bytes) -> str:
    """ROWS_QUERY (29): the statement that caused the rows after it.

    The first byte is the length modulo 256 and is ignored; the text is the rest.
    """
    reader = Reader(body, "ROWS_QUERY")
    reader.u8()
    return reader.rest().decode("utf-8", "surrogateescape")
