"""The options of the data source: name, type, default, check and documentation in one model.

Spark passes a mapping of texts. `Options.parse` is the only way from it to values. Names are
case-insensitive; an unknown name is answered with the most similar one. Every problem becomes one
OptionError, so no other module sees a text, or an error of pydantic's, which would print the given
value, even a secret. docs/reference/options.md is generated from this model.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from zlib import crc32

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic.alias_generators import to_camel

from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter, TableFilter
from pyspark_mysqlbinlog.connector.options.values import (
    Earliest,
    FilePosition,
    Latest,
    Place,
    Snapshot,
    Timestamp,
    parse_bool,
    parse_conditions,
    parse_duration,
    parse_number,
    parse_place,
    parse_reload,
    parse_server_ids,
    parse_size,
)
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table, table_folding
from pyspark_mysqlbinlog.protocol.client import ServerSettings

__all__ = ["FIELDS", "Options", "field_info"]

Operation = Literal["insert", "update", "delete", "truncate", "ddl"]
_OPERATIONS: tuple[Operation, ...] = ("insert", "update", "delete", "truncate", "ddl")


def _choice(*names: str) -> BeforeValidator:
    """Accept one of `names`, in any case."""
    by_lower = {name.lower(): name for name in names}
    return BeforeValidator(lambda text: by_lower.get(text.strip().lower(), text))


def _parse_text(text: str) -> str:
    if not text.strip():
        raise ValueError("empty")
    return text.strip()


def _parse_operations(text: str) -> frozenset[str]:
    found = frozenset(part.strip().lower() for part in text.split(","))
    if not found <= frozenset(_OPERATIONS):
        raise ValueError("unknown operation")
    return found


Text = Annotated[str, BeforeValidator(_parse_text)]
Number = Annotated[int, BeforeValidator(lambda text: parse_number(text.strip()))]
Flag = Annotated[bool, BeforeValidator(lambda text: parse_bool(text.strip()))]
Duration = Annotated[float, BeforeValidator(lambda text: parse_duration(text.strip()))]
Size = Annotated[int, BeforeValidator(lambda text: parse_size(text.strip()))]
PlaceInLog = Annotated[
    Latest | Earliest | FilePosition | Timestamp | Snapshot,
    BeforeValidator(lambda text: parse_place(text.strip())),
]
Conditions = Annotated[dict[str, str], BeforeValidator(parse_conditions)]
Reload = Annotated[tuple[str, str], BeforeValidator(parse_reload)]
ServerIds = Annotated[tuple[int, int], BeforeValidator(lambda text: parse_server_ids(text.strip()))]
Operations = Annotated[frozenset[Operation], BeforeValidator(_parse_operations)]
SslMode = Annotated[
    Literal["DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"],
    _choice("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"),
]
Payload = Annotated[Literal["json", "struct", "variant"], _choice("json", "struct", "variant")]
EvolutionMode = Annotated[
    Literal["addNewColumns", "rescue", "failOnNewColumns", "none"],
    _choice("addNewColumns", "rescue", "failOnNewColumns", "none"),
]
OnUnknownSchema = Annotated[Literal["fail", "positional"], _choice("fail", "positional")]
TimeType = Annotated[
    Literal["string", "interval", "micros"], _choice("string", "interval", "micros")
]
JsonType = Annotated[Literal["string", "variant", "text"], _choice("string", "variant", "text")]
SnapshotProof = Annotated[
    Literal["auto", "gtid", "innodb_trx", "lock"], _choice("auto", "gtid", "innodb_trx", "lock")
]
ZeroDates = Annotated[Literal["null", "fail"], _choice("null", "fail")]


# The reads that an option is for. Other reads reject it, with one exception: a batch read of a
# server ignores options of streams. They only tune and never decide which rows are returned, so
# one set of options works for both.
_Reads = Literal["all", "servers", "streams", "batch reads"]


def _option(
    default: Any,
    shown: str,
    expects: str,
    meaning: str,
    *,
    reads: _Reads = "all",
    gt: float | None = None,
    ge: float | None = None,
    le: float | None = None,
) -> Any:
    """Return a field: its default, the default as users write it, the form of a value."""
    extra: dict[str, Any] = {"shown": shown, "expects": expects, "reads": reads}
    if reads in ("streams", "batch reads"):
        meaning += f". {reads.capitalize()} only"
    return Field(default, description=meaning, json_schema_extra=extra, gt=gt, ge=ge, le=le)


class Options(BaseModel):
    """The options of one query. Frozen and picklable; its repr shows no secret.

    Durations are in seconds, sizes in bytes. Use `parse`: the constructor takes texts by their
    Spark names and raises pydantic's errors.
    """

    # Validators are built where options are parsed: workers, which unpickle them, need none.
    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        hide_input_in_errors=True,
    )

    host: Text | None = _option(
        None, "", "a host name or address", "The MySQL server. Set either this or `path`"
    )
    port: Number = _option(
        3306,
        "3306",
        "a number from 1 to 65535",
        "Port of the server",
        ge=1,
        le=65535,
        reads="servers",
    )
    user: Text | None = _option(
        None,
        "",
        "an account's name",
        "Account of the server. It needs REPLICATION SLAVE, REPLICATION CLIENT and SELECT",
        reads="servers",
    )
    password: SecretStr | None = _option(
        None,
        "",
        "a text",
        "Password of the account",
        reads="servers",
    )
    password_file: Text | None = _option(
        None,
        "",
        "the name of a readable file in UTF-8",
        "File that contains the password, instead of `password`. It is read once, on the driver",
        reads="servers",
    )
    path: Text | None = _option(
        None,
        "",
        "a file, a glob or a folder",
        "Binlog file, glob or folder, instead of a server. It must be readable under this name"
        " on driver and executors",
        reads="batch reads",
    )
    tables: Text | None = _option(
        None,
        "",
        "a list of database.table, globs and /regexes/",
        "Captured tables: `db.table` or `` `db`.`table` ``, with `*` and `?` as globs, or"
        " `/regex/` over `db.table`, separated by commas. Default: all tables except system"
        " schemas",
    )
    exclude_tables: Text | None = _option(
        None,
        "",
        "a list of database.table, globs and /regexes/",
        "Tables that are not captured, in the same forms. It takes precedence over `tables`",
    )
    exclude_columns: Text | None = _option(
        None,
        "",
        "a list of database.table.column, globs and /regexes/",
        "Columns that are skipped: `db.table.column` in the same forms, or `/regex/` over"
        " `db.table.column`. They are in no payload and not in `source.missing`",
    )
    operations: Operations = _option(
        frozenset({"insert", "update", "delete", "truncate"}),
        "insert,update,delete,truncate",
        "a list of insert, update, delete, truncate and ddl",
        "Kinds of change to deliver. `truncate` is TRUNCATE of a table or a partition, as"
        " `source.query` shows. `ddl` is DDL that changes or removes rows",
    )
    starting_offset: PlaceInLog | None = _option(
        None,
        "",
        "latest, earliest, snapshot, FILE:POS with a position of at least 4, or an ISO time such as"
        " 2026-11-20T10:00:00Z",
        "Where a query without a checkpoint starts: `latest`, `earliest`, `snapshot` (existing"
        " rows, and changes from `latest` on), `FILE:POS`, or an ISO time, UTC by default (the"
        " first transaction whose first event is not older). Default: `latest` for a stream,"
        " `earliest` for a batch read and `path`. `gtid:SET` is not supported yet",
    )
    ending_offset: PlaceInLog = _option(
        Latest(),
        "latest",
        "latest, FILE:POS with a position of at least 4, or an ISO time such as"
        " 2026-11-20T10:00:00Z",
        "Where the read ends: `latest`, `FILE:POS`, or an ISO time",
        reads="batch reads",
    )
    snapshot_where: Conditions | None = _option(
        None,
        "",
        'a JSON object of tables and SQL conditions such as {"shop.orders": "id > 1000"}',
        "Limits snapshots to the rows that satisfy an SQL condition, as a JSON object:"
        ' `{"shop.orders": "created >= \'2026-01-01\'"}`. The binlog is not filtered',
        reads="servers",
    )
    reload: Reload | None = _option(
        None,
        "",
        "ID: TABLES, such as fix-1: shop.orders",
        "Snapshots tables again in a query that has a checkpoint. Format: `ID: TABLES`, where"
        " TABLES uses the syntax of `tables`. Each ID runs once; use a new ID to reload again."
        " Streams only",
        reads="servers",
    )
    reload_after_ddl: Flag = _option(
        False,
        "false",
        "true or false",
        "Whether a table is reloaded after DDL that rewrote its rows without row events."
        " Streams only",
        reads="servers",
    )
    payload: Payload | None = _option(
        None,
        "",
        "json, struct or variant",
        "Type of `before` and `after`: `struct` (needs literal `tables`), `json` or `variant`."
        " Default: `struct` if `tables` is the name of one table, otherwise `json`",
    )
    max_bytes_per_trigger: Size = _option(
        1 << 30,
        "1g",
        "a size above 0 such as 64m",
        "Limit of a batch in bytes of binlog. A batch has at least one transaction",
        gt=0,
        reads="streams",
    )
    max_rows_per_trigger: Number | None = _option(
        None,
        "",
        "a number above 0",
        "Limit of a batch in rows. The nearer of both limits applies",
        gt=0,
        reads="streams",
    )
    ssl_mode: SslMode = _option(
        "PREFERRED",
        "PREFERRED",
        "DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
        "TLS, as in MySQL's clients: `DISABLED`, `PREFERRED`, `REQUIRED`, `VERIFY_CA`,"
        " `VERIFY_IDENTITY`. Only the last two verify the server's certificate",
        reads="servers",
    )
    ssl_ca: Text | None = _option(
        None,
        "",
        "the name of a PEM file",
        "Certificates of trusted authorities. The modes `VERIFY_…` require it, the others"
        " reject it",
        reads="servers",
    )
    ssl_cert: Text | None = _option(
        None,
        "",
        "the name of a PEM file",
        "Certificate of the client. It needs `sslKey`",
        reads="servers",
    )
    ssl_key: Text | None = _option(
        None,
        "",
        "the name of a PEM file",
        "Key of the client's certificate",
        reads="servers",
    )
    server_id: ServerIds = _option(
        (1 << 30, (1 << 31) - 1),
        "1073741824-2147483647",
        "a number from 1 to 4294967295, or a range such as 6000-6100",
        "Replica id of each connection, drawn from this range. No other replica can use it",
        reads="servers",
    )
    heartbeat_interval: Duration = _option(
        10.0,
        "10s",
        "a duration from 1ms to 1d such as 10s",
        "Time after which a silent server sends a heartbeat. A connection counts as lost after"
        " three intervals without one, but not before 30s",
        ge=0.001,
        le=86400,
        reads="servers",
    )
    connect_timeout: Duration = _option(
        10.0,
        "10s",
        "a duration from 1ms to 1d such as 10s",
        "Limit for each attempt to connect",
        ge=0.001,
        le=86400,
        reads="servers",
    )
    retry_timeout: Duration = _option(
        600.0,
        "10m",
        "a duration such as 10m",
        "How long a lost connection is retried before the query fails",
        reads="streams",
    )
    idle_offset_interval: Duration = _option(
        30.0,
        "30s",
        "a duration such as 30s",
        "How often the offset moves while only tables that are not captured change",
        reads="streams",
    )
    buffer_bytes: Size = _option(
        64 << 20,
        "64m",
        "a size of at least 1m such as 64m",
        "Size of the binlog that the driver buffers ahead of Spark",
        ge=1 << 20,
        reads="streams",
    )
    # A task costs Spark as much as decoding some 50 MB.
    target_partition_bytes: Size = _option(
        64 << 20,
        "64m",
        "a size above 0 such as 16m",
        "Approximate size of the binlog, or of the table chunk, that one task reads. A batch"
        " read of a server is one task",
        gt=0,
    )
    max_connections: Number = _option(
        4,
        "4",
        "a number above 0",
        "How many executors read from the server at a time, in addition to the stream's own"
        " connections",
        gt=0,
        reads="streams",
    )
    snapshot_visibility_check: SnapshotProof = _option(
        "auto",
        "auto",
        "auto, gtid, innodb_trx or lock",
        "How a snapshot verifies that its SELECT sees every transaction already in the binlog:"
        " `gtid` (MySQL 5.7 with `gtid_mode=ON`), `innodb_trx` (needs PROCESS), `lock` (a short"
        " LOCK TABLES … READ; needs LOCK TABLES). `auto` uses the first one available",
        reads="servers",
    )
    snapshot_exact_keyless: Flag = _option(
        False,
        "false",
        "true or false",
        "Whether a table with neither a primary key nor a `UNIQUE` key of `NOT NULL` columns is"
        " snapshotted at an exact binlog position, which a row with `op` `t` marks (needs LOCK"
        " TABLES)",
        reads="servers",
    )
    fail_on_data_loss: Flag = _option(
        True,
        "true",
        "true or false",
        "Whether the query stops if the binlog that it needs was purged. `false` is not"
        " supported yet",
    )
    schema_evolution_mode: EvolutionMode = _option(
        "addNewColumns",
        "addNewColumns",
        "addNewColumns, rescue, failOnNewColumns or none",
        "What happens with a column that a `struct` payload has no field for: `addNewColumns`"
        " stops before it if a restart adds it, otherwise rescues it; `rescue` delivers it in"
        " `_rescued_data`; `failOnNewColumns` stops; `none` ignores it",
    )
    schema_ddl: Text | None = _option(
        None,
        "",
        "the name of a readable file in UTF-8",
        "File of CREATE TABLE statements, as `mysqldump --no-data` writes it: the tables at the"
        " beginning of the binlog that is read. It is read on the driver",
    )
    on_unknown_schema: OnUnknownSchema = _option(
        "fail",
        "fail",
        "fail or positional",
        "What happens with rows of a table with unknown columns: `fail`, or `positional`, which"
        " names them `@1`, `@2`, … (`json` and `variant` only)",
    )
    time_type: TimeType = _option(
        "string",
        "string",
        "string, interval or micros",
        "Type of TIME in a `struct` payload: `string` as in SELECT, `interval` (day to second),"
        " or `micros` (bigint)",
    )
    json_type: JsonType = _option(
        "string",
        "string",
        "string, variant or text",
        "Type of JSON: `string` or `variant` in a `struct` payload. In a `json` payload a"
        " document is the value itself; with `text` it is a string with the document's text,"
        " which distinguishes JSON's own null from NULL",
    )
    zero_dates: ZeroDates = _option(
        "null",
        "null",
        "null or fail",
        "What becomes of zero and invalid dates (`0000-00-00`, `2026-11-00`) in a `struct`"
        " payload: `null`, listed in `source.invalid_dates`, or `fail`",
    )
    tiny_int1_is_boolean: Flag = _option(
        False,
        "false",
        "true or false",
        "Whether TINYINT(1) is a boolean in a `struct` payload: every value except 0 is true",
    )

    # Only the server decides whether table names are case-sensitive: every method takes it.

    def table_filter(self, case_sensitive: bool) -> TableFilter:
        """Parse `tables` and `excludeTables`; see TableFilter.parse."""
        return TableFilter.parse(self.tables, self.exclude_tables, case_sensitive)

    @property
    def table_filter_hash(self) -> str:
        """Return a short text that differs if other tables are captured."""
        texts = repr((self.tables, self.exclude_tables)).encode("utf-8", "surrogatepass")
        return f"{crc32(texts):08x}"

    def column_filter(self, case_sensitive: bool) -> ColumnFilter:
        """Parse `excludeColumns`; see ColumnFilter.parse."""
        return ColumnFilter.parse(self.exclude_columns, case_sensitive)

    @property
    def payload_kind(self) -> Literal["json", "struct", "variant"]:
        """Return `payload`, or its default for these tables."""
        if self.payload is not None:
            return self.payload
        tables = self.table_filter(True)
        return "struct" if tables.is_literal and len(tables.literals) == 1 else "json"

    @property
    def rescues(self) -> bool:
        """Whether values that a struct can't contain are returned in `_rescued_data`."""
        return self.payload_kind == "struct" and self.schema_evolution_mode in (
            "addNewColumns",
            "rescue",
        )

    @property
    def struct_options(self) -> StructOptions:
        """Return the representation of types for which a struct has more than one."""
        return StructOptions(
            time_type=self.time_type,
            json_type=self.json_type,
            zero_dates=self.zero_dates,
            tiny_int1_is_boolean=self.tiny_int1_is_boolean,
        )

    @property
    def loads(self) -> bool:
        """Whether a query without a checkpoint begins with a snapshot of its tables."""
        return isinstance(self.starting_offset, Snapshot)

    def conditions(self, case_sensitive: bool) -> dict[Table, str]:
        """Return `snapshotWhere` by (database, table), folded as the server compares names."""
        found: dict[Table, str] = {}
        folded = table_folding(case_sensitive)
        for name, condition in (self.snapshot_where or {}).items():
            literals = TableFilter.parse(name, None, case_sensitive).literals
            if len(literals) != 1:
                raise OptionError(
                    f"option snapshotWhere: expected the name of one table, database.table, found"
                    f" {name!r}"
                )
            table = folded(literals[0])
            if table in found:
                raise OptionError(
                    f"option snapshotWhere: expected one condition for {'.'.join(table)}, found two"
                )
            found[table] = condition
        return found

    def reload_filter(self, case_sensitive: bool) -> TableFilter:
        """Return the tables of `reload`; without that option, none."""
        tables = "" if self.reload is None else self.reload[1]
        return TableFilter.parse(tables, self.exclude_tables, case_sensitive)

    def place_to_start(self, *, streaming: bool) -> Place:
        """Return `startingOffset`, or its default for this kind of read."""
        if self.starting_offset is not None:
            return self.starting_offset
        return Latest() if streaming and self.path is None else Earliest()

    def server_settings(self) -> ServerSettings:
        """Return how to connect to the server; OptionError if these options are for files."""
        if self.host is None or self.user is None:
            raise OptionError("option host is missing: there is no server to connect to")
        return ServerSettings(
            host=self.host,
            port=self.port,
            user=self.user,
            password="" if self.password is None else self.password.get_secret_value(),
            ssl_mode=self.ssl_mode,
            ssl_ca=self.ssl_ca,
            ssl_cert=self.ssl_cert,
            ssl_key=self.ssl_key,
            connect_timeout=self.connect_timeout,
            heartbeat_interval=self.heartbeat_interval,
            server_ids=self.server_id,
        )


# Spark's name of each option -> its field.
FIELDS = {to_camel(name): field for name, field in Options.model_fields.items()}


def field_info(name: str, what: str) -> str:
    """Return an entry of an option's definition that is not pydantic's."""
    extra = FIELDS[name].json_schema_extra
    return str(extra[what]) if isinstance(extra, dict) else ""
