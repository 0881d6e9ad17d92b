"""Every option of the data source: name, type, default, check and documentation in one model.

Spark hands over a mapping of texts. `Options.parse` is the one way from it to values: names are
matched without regard to case, an unknown one is answered with the nearest right one, and every
problem becomes one OptionError, so that nobody behind this module sees a text or an error of
pydantic's, which would print what was given: a secret, too. docs/options.md is this model as a
table; a test compares them.
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

__all__ = ["FIELDS", "Options", "told"]

Operation = Literal["insert", "update", "delete", "truncate", "ddl"]
_OPERATIONS: tuple[Operation, ...] = ("insert", "update", "delete", "truncate", "ddl")


def _choice(*names: str) -> BeforeValidator:
    """One of `names`, in any case."""
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


# Which reads an option is for. Given to another it is refused, but that a batch read of a server
# takes a stream's options without effect: they tune, and never decide which rows come, and so one
# set of options does for both.
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
    """A field: its default, the default as a user would write it, what a value looks like."""
    extra: dict[str, Any] = {"shown": shown, "expects": expects, "reads": reads}
    if reads in ("streams", "batch reads"):
        meaning += f"; {reads} only"
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
        None, "", "a host name or address", "the server; either this or `path`"
    )
    port: Number = _option(
        3306,
        "3306",
        "a number from 1 to 65535",
        "the server's port",
        ge=1,
        le=65535,
        reads="servers",
    )
    user: Text | None = _option(
        None,
        "",
        "an account's name",
        "needs REPLICATION SLAVE, REPLICATION CLIENT and SELECT",
        reads="servers",
    )
    password: SecretStr | None = _option(
        None,
        "",
        "a text",
        "the account's password",
        reads="servers",
    )
    password_file: Text | None = _option(
        None,
        "",
        "the name of a readable file in UTF-8",
        "a file that holds the password, in place of `password`; read once, on the driver",
        reads="servers",
    )
    path: Text | None = _option(
        None,
        "",
        "a file, a glob or a folder",
        "a binlog file, glob or folder instead of a server; readable under that name on driver and"
        " executors",
        reads="batch reads",
    )
    tables: Text | None = _option(
        None,
        "",
        "a list of database.table, globs and /regexes/",
        "the wanted tables: `db.table` or `` `db`.`table` ``, with `*` and `?` as globs, or"
        " `/regex/` over `db.table`; separated by commas. All but system schemas when left out",
    )
    exclude_tables: Text | None = _option(
        None,
        "",
        "a list of database.table, globs and /regexes/",
        "tables that are not wanted, in the same forms; wins over `tables`",
    )
    exclude_columns: Text | None = _option(
        None,
        "",
        "a list of database.table.column, globs and /regexes/",
        "columns that are skipped: `db.table.column` in the same forms, or `/regex/` over"
        " `db.table.column`; they are in no payload and not in `source.missing`",
    )
    operations: Operations = _option(
        frozenset({"insert", "update", "delete", "truncate"}),
        "insert,update,delete,truncate",
        "a list of insert, update, delete, truncate and ddl",
        "the wanted kinds of change. `truncate` is of a whole table or of a partition, as"
        " `source.query` tells; `ddl` is DDL that changes or removes rows by itself",
    )
    starting_offset: PlaceInLog | None = _option(
        None,
        "",
        "latest, earliest, snapshot, FILE:POS with a position of at least 4, or an ISO time such as"
        " 2026-11-20T10:00:00Z",
        "`latest`, `earliest`, `snapshot`, `FILE:POS`, or an ISO time (UTC unless it has a zone):"
        " the first transaction whose first event is not older. `snapshot` is `latest`, and the"
        " rows that the tables have already come as well (docs/loading.md). Only used when there is"
        " no checkpoint. When left out, a stream starts at `latest`, a batch read and `path` at"
        " `earliest`. `gtid:SET` is not built yet",
    )
    ending_offset: PlaceInLog = _option(
        Latest(),
        "latest",
        "latest, FILE:POS with a position of at least 4, or an ISO time such as"
        " 2026-11-20T10:00:00Z",
        "where the read ends: `latest`, `FILE:POS`, or an ISO time",
        reads="batch reads",
    )
    snapshot_where: Conditions | None = _option(
        None,
        "",
        'a JSON object of tables and SQL conditions such as {"shop.orders": "id > 1000"}',
        "loads only those rows of a table for which an SQL condition holds, as a JSON object:"
        ' `{"shop.orders": "created >= \'2026-01-01\'"}`. The log is not filtered',
        reads="servers",
    )
    reload: Reload | None = _option(
        None,
        "",
        "NAME: TABLES, such as fix-1: shop.orders",
        "loads tables again in a query that has a checkpoint: `NAME: TABLES`, where TABLES is as in"
        " `tables`, and NAME is another one than the last time. A name is done once, however often"
        " the query is started with it. Streams only",
        reads="servers",
    )
    reload_after_ddl: Flag = _option(
        False,
        "false",
        "true or false",
        "whether a table is loaded again, while the stream goes on, behind a statement that changed"
        " its rows without telling the log which. Streams only",
        reads="servers",
    )
    payload: Payload | None = _option(
        None,
        "",
        "json, struct or variant",
        "the type of `before` and `after`: `struct` (needs literal `tables`), `json` or `variant`."
        " When left out, `struct` if `tables` is one table's name, else `json`; a checkpoint whose"
        " query would change its payload so is refused",
    )
    max_bytes_per_trigger: Size = _option(
        1 << 30,
        "1g",
        "a size above 0 such as 64m",
        "a batch takes the transactions within this many bytes of log, and one at least",
        gt=0,
        reads="streams",
    )
    max_rows_per_trigger: Number | None = _option(
        None,
        "",
        "a number above 0",
        "the same for this many rows; the nearer limit wins",
        gt=0,
        reads="streams",
    )
    ssl_mode: SslMode = _option(
        "PREFERRED",
        "PREFERRED",
        "DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
        "as in MySQL's clients: `DISABLED`, `PREFERRED`, `REQUIRED`, `VERIFY_CA`,"
        " `VERIFY_IDENTITY`; only the last two verify the server's certificate",
        reads="servers",
    )
    ssl_ca: Text | None = _option(
        None,
        "",
        "the name of a PEM file",
        "certificates of the authorities to trust; the modes `VERIFY_…` need it, and the others"
        " refuse it",
        reads="servers",
    )
    ssl_cert: Text | None = _option(
        None,
        "",
        "the name of a PEM file",
        "the client's certificate; needs `sslKey`",
        reads="servers",
    )
    ssl_key: Text | None = _option(
        None,
        "",
        "the name of a PEM file",
        "the key of the client's certificate",
        reads="servers",
    )
    server_id: ServerIds = _option(
        (1 << 30, (1 << 31) - 1),
        "1073741824-2147483647",
        "a number from 1 to 4294967295, or a range such as 6000-6100",
        "the id that each connection registers as a replica, drawn from this range; must not be"
        " another replica's",
        reads="servers",
    )
    heartbeat_interval: Duration = _option(
        10.0,
        "10s",
        "a duration from 1ms to 1d such as 10s",
        "how often a silent server gives a sign of life; a connection is lost after three of these"
        " without one, but not before 30s",
        ge=0.001,
        le=86400,
        reads="servers",
    )
    connect_timeout: Duration = _option(
        10.0,
        "10s",
        "a duration from 1ms to 1d such as 10s",
        "how long connecting may take, each time",
        ge=0.001,
        le=86400,
        reads="servers",
    )
    retry_timeout: Duration = _option(
        600.0,
        "10m",
        "a duration such as 10m",
        "how long a lost connection is tried again before the query fails",
        reads="streams",
    )
    idle_offset_interval: Duration = _option(
        30.0,
        "30s",
        "a duration such as 30s",
        "how often the offset moves on while only unwanted tables change",
        reads="streams",
    )
    buffer_bytes: Size = _option(
        64 << 20,
        "64m",
        "a size of at least 1m such as 64m",
        "the log that the driver holds in memory ahead of Spark",
        ge=1 << 20,
        reads="streams",
    )
    # A task costs Spark as much as decoding some 50 MB.
    target_partition_bytes: Size = _option(
        64 << 20,
        "64m",
        "a size above 0 such as 16m",
        "the log that one task fetches and decodes, about; a batch read of a server is one task",
        gt=0,
    )
    max_connections: Number = _option(
        4,
        "4",
        "a number above 0",
        "how many executors read from the server at once, on top of the stream's own connections",
        gt=0,
        reads="streams",
    )
    snapshot_visibility_check: SnapshotProof = _option(
        "auto",
        "auto",
        "auto, gtid, innodb_trx or lock",
        "how a first load makes sure that its SELECT sees all that is in the log before it: `gtid`"
        " (MySQL 5.7 with `gtid_mode=ON`), `innodb_trx` (needs PROCESS), `lock` (a momentary LOCK"
        " TABLES … READ; needs LOCK TABLES), or with `auto` the first of them that can be had",
        reads="servers",
    )
    snapshot_exact_keyless: Flag = _option(
        False,
        "false",
        "true or false",
        "whether a table that has neither a primary key nor a `UNIQUE` key of `NOT NULL` columns is"
        " loaded at an exact place in the log, which a row with `op` `t` tells (needs LOCK TABLES)",
        reads="servers",
    )
    fail_on_data_loss: Flag = _option(
        True,
        "true",
        "true or false",
        "whether to stop when the needed log is purged. `false` is not built yet",
    )
    schema_evolution_mode: EvolutionMode = _option(
        "addNewColumns",
        "addNewColumns",
        "addNewColumns, rescue, failOnNewColumns or none",
        "what a column does that a `struct` payload has no place for: `addNewColumns` stops in"
        " front of it when a restart adds it, and else rescues it; `rescue` gives it in"
        " `_rescued_data`; `failOnNewColumns` stops; `none` passes over it",
    )
    schema_ddl: Text | None = _option(
        None,
        "",
        "the name of a readable file in UTF-8",
        "a file of CREATE TABLE statements, as `mysqldump --no-data` writes it: how tables looked"
        " where the log begins that is read; read on the driver",
    )
    on_unknown_schema: OnUnknownSchema = _option(
        "fail",
        "fail",
        "fail or positional",
        "what to do with rows of a table whose columns are not known: `fail`, or give them as"
        " `@1`, `@2`, … (`json` and `variant` only)",
    )
    time_type: TimeType = _option(
        "string",
        "string",
        "string, interval or micros",
        "how TIME is given in a `struct` payload: as SELECT shows it, as `interval` (day to"
        " second), or as `micros` (a bigint)",
    )
    json_type: JsonType = _option(
        "string",
        "string",
        "string, variant or text",
        "how JSON is given: in a `struct` payload as `string` or `variant`. In a `json` payload a"
        " document is the value itself; with `text` it is a string that holds the document's text,"
        " so that JSON's own null is not NULL",
    )
    zero_dates: ZeroDates = _option(
        "null",
        "null",
        "null or fail",
        "what becomes of zero dates (`0000-00-00`, `2026-11-00`) in a `struct` payload: `null`,"
        " named in `source.invalid_dates`, or `fail`",
    )
    tiny_int1_is_boolean: Flag = _option(
        False,
        "false",
        "true or false",
        "whether TINYINT(1) is a boolean in a `struct` payload: all but 0 is true",
    )

    # Whether names of tables differ by case only the server tells: no method takes it for granted.

    def table_filter(self, case_sensitive: bool) -> TableFilter:
        """What `tables` and `excludeTables` say; see TableFilter.parse."""
        return TableFilter.parse(self.tables, self.exclude_tables, case_sensitive)

    @property
    def table_filter_hash(self) -> str:
        """A short text that is another one when other tables are wanted."""
        texts = repr((self.tables, self.exclude_tables)).encode("utf-8", "surrogatepass")
        return f"{crc32(texts):08x}"

    def column_filter(self, case_sensitive: bool) -> ColumnFilter:
        """What `excludeColumns` says; see ColumnFilter.parse."""
        return ColumnFilter.parse(self.exclude_columns, case_sensitive)

    @property
    def payload_kind(self) -> Literal["json", "struct", "variant"]:
        """`payload`, or its default for these tables."""
        if self.payload is not None:
            return self.payload
        tables = self.table_filter(True)
        return "struct" if tables.is_literal and len(tables.literals) == 1 else "json"

    @property
    def rescues(self) -> bool:
        """Whether what has no place in a struct is given in `_rescued_data`."""
        return self.payload_kind == "struct" and self.schema_evolution_mode in (
            "addNewColumns",
            "rescue",
        )

    @property
    def struct_options(self) -> StructOptions:
        """How types are given that a struct can give in more than one way."""
        return StructOptions(
            time_type=self.time_type,
            json_type=self.json_type,
            zero_dates=self.zero_dates,
            tiny_int1_is_boolean=self.tiny_int1_is_boolean,
        )

    @property
    def loads(self) -> bool:
        """Whether a query without a checkpoint begins with the rows that the tables have."""
        return isinstance(self.starting_offset, Snapshot)

    def conditions(self, case_sensitive: bool) -> dict[Table, str]:
        """What `snapshotWhere` says, by (database, table), folded as the server compares names."""
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
        """The tables of `reload`; without it, none is meant."""
        tables = "" if self.reload is None else self.reload[1]
        return TableFilter.parse(tables, self.exclude_tables, case_sensitive)

    def place_to_start(self, *, streaming: bool) -> Place:
        """`startingOffset`, or its default for this kind of read."""
        if self.starting_offset is not None:
            return self.starting_offset
        return Latest() if streaming and self.path is None else Earliest()

    def server_settings(self) -> ServerSettings:
        """How to reach the server; OptionError when these options name files."""
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


def told(name: str, what: str) -> str:
    """What an option's definition says besides pydantic's part."""
    extra = FIELDS[name].json_schema_extra
    return str(extra[what]) if isinstance(extra, dict) else ""
