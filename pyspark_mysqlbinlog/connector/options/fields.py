"""The options, one field each: name, type, default, check and documentation.

docs/reference/options.md is generated from these fields.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, SecretStr
from pydantic.alias_generators import to_camel

from pyspark_mysqlbinlog.connector.options.field_types import (
    Conditions,
    Duration,
    EvolutionMode,
    Flag,
    Fraction,
    Hosts,
    JsonType,
    LowerCaseTableNames,
    Number,
    OnUnknownSchema,
    Operations,
    Payload,
    PlaceInLog,
    Reload,
    ServerIds,
    Size,
    SnapshotVisibilityCheck,
    SslMode,
    Text,
    TimeType,
    ZeroDates,
    option,
)
from pyspark_mysqlbinlog.connector.options.values import Latest

__all__ = ["OptionFields"]


class OptionFields(BaseModel):
    """The fields of `model.Options`, which has the methods."""

    # Validators are built where options are parsed: workers, which unpickle them, need none.
    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        hide_input_in_errors=True,
    )

    host: Hosts | None = option(
        None,
        "",
        "a host name or address, or several as in db1,db2:3307",
        "The MySQL server. Several, separated by commas, are servers that replicate one another"
        " with GTIDs: if the one that is read is lost, a stream continues on another one that"
        " provably has all that was delivered. Set either this or `path`",
    )
    failover: Flag = option(
        False,
        "false",
        "true or false",
        "Whether another server may answer under the one name in `host` (a virtual address, a"
        " proxy, DNS), and the stream may continue on it as if `host` named both. With several"
        " names in `host`, failover is always on",
        reads="servers",
    )
    prefer_replica: Flag = option(
        False,
        "false",
        "true or false",
        "Whether a running replica is read rather than the primary, if one of the servers in"
        " `host` is one. It applies when a query begins and when a server is lost",
        reads="servers",
    )
    port: Number = option(
        3306,
        "3306",
        "a number from 1 to 65535",
        "Port of the server",
        ge=1,
        le=65535,
        reads="servers",
    )
    user: Text | None = option(
        None,
        "",
        "an account's name",
        "Account of the server. It needs REPLICATION SLAVE, REPLICATION CLIENT and SELECT",
        reads="servers",
    )
    password: SecretStr | None = option(
        None,
        "",
        "a text",
        "Password of the account",
        reads="servers",
    )
    password_file: Text | None = option(
        None,
        "",
        "the name of a readable file in UTF-8",
        "File that contains the password, instead of `password`. It is read once, on the driver",
        reads="servers",
    )
    path: Text | None = option(
        None,
        "",
        "a file, a glob or a folder",
        "Binlog file, glob or folder, instead of a server. It must be readable under this name"
        " on driver and executors, or be a URL that fsspec reads (extra `fsspec`). A stream follows"
        " files that are added, and that grow",
    )
    lower_case_table_names: LowerCaseTableNames | None = option(
        None,
        "",
        "0 or 1",
        "The variable `lower_case_table_names` of the server that wrote the files at `path`: with"
        " `1`, names of databases and tables match in any case, and rows have them in lower case."
        " Default: the value that the checkpoint records, otherwise `0`. Without a value, a"
        " statement that contradicts `0` stops the read. Not for `host`: the server is asked",
        reads="files",
    )
    tables: Text | None = option(
        None,
        "",
        "a list of database.table, globs and /regexes/",
        "Captured tables: `db.table` or `` `db`.`table` ``, with `*` and `?` as globs, or"
        " `/regex/` over `db.table`, separated by commas. Default: all tables except system"
        " schemas",
    )
    exclude_tables: Text | None = option(
        None,
        "",
        "a list of database.table, globs and /regexes/",
        "Tables that are not captured, in the same forms. It takes precedence over `tables`",
    )
    exclude_columns: Text | None = option(
        None,
        "",
        "a list of database.table.column, globs and /regexes/",
        "Columns that are skipped: `db.table.column` in the same forms, or `/regex/` over"
        " `db.table.column`. They are in no payload and not in `source.missing`",
    )
    mask_columns: Conditions | None = option(
        None,
        "",
        'a JSON object of columns and masks such as {"shop.customers.email": "hash"}',
        "Masks of columns, as a JSON object of `db.table.column`, in the forms of"
        " `excludeColumns`, and a mask: `hash` (HMAC-SHA256 with `maskSecret`), `redact` (`***`),"
        " `truncate(n)` (the first n characters) or `keepLast(n)` (`***` and the last n"
        " characters). NULL stays NULL",
    )
    mask_secret: SecretStr | None = option(
        None,
        "",
        "a text of at least 16 bytes",
        "Key of the mask `hash`, of at least 16 bytes. With the same key, a value has the same hash"
        " in every query",
    )
    mask_secret_file: Text | None = option(
        None,
        "",
        "the name of a readable file in UTF-8",
        "File that contains the key, instead of `maskSecret`. It is read once, on the driver",
    )
    row_filter: Conditions | None = option(
        None,
        "",
        'a JSON object of tables and conditions such as {"shop.customers": "country = \'DE\'"}',
        "Delivers only the rows of a table that meet a condition, as a JSON object:"
        ' `{"shop.customers": "country = \'DE\' AND NOT deleted"}`. An update by which a row comes'
        " to meet it is an insert, and one by which it ceases to is a delete",
    )
    accept_changed_transforms: Flag = option(
        False,
        "false",
        "true or false",
        "Whether a query continues although its checkpoint was written with other `maskColumns`,"
        " `rowFilter` or `maskSecret`. What was delivered before stays as it is",
        reads="streams",
    )
    operations: Operations = option(
        frozenset({"insert", "update", "delete", "truncate"}),
        "insert,update,delete,truncate",
        "a list of insert, update, delete, truncate, ddl and gap",
        "Kinds of change to deliver. `truncate` is TRUNCATE of a table or a partition, as"
        " `source.query` shows. `ddl` is DDL that changes or removes rows. `gap` marks where"
        " changes are missing (`failOnDataLoss=false`)",
    )
    starting_offset: PlaceInLog | None = option(
        None,
        "",
        "latest, earliest, snapshot, FILE:POS with a position of at least 4, gtid:SET, or an ISO"
        " time such as 2026-11-20T10:00:00Z",
        "Where a query without a checkpoint starts: `latest`, `earliest`, `snapshot` (existing"
        " rows, and changes from `latest` on), `FILE:POS`, `gtid:SET` (after exactly the"
        " transactions of a set, as `gtid_executed`, or MariaDB's `gtid_binlog_pos`, shows one;"
        " servers only), or an ISO time, UTC"
        " by default (the first transaction whose first event is not older). Default: `latest` for"
        " a stream, `earliest` for a batch read and `path`",
    )
    ending_offset: PlaceInLog = option(
        Latest(),
        "latest",
        "latest, FILE:POS with a position of at least 4, gtid:SET, or an ISO time such as"
        " 2026-11-20T10:00:00Z",
        "Where the read ends: `latest`, `FILE:POS`, `gtid:SET` (after exactly the transactions of a"
        " set; servers only), or an ISO time",
        reads="batch reads",
    )
    snapshot_where: Conditions | None = option(
        None,
        "",
        'a JSON object of tables and SQL conditions such as {"shop.orders": "id > 1000"}',
        "Limits snapshots to the rows that satisfy an SQL condition, as a JSON object:"
        ' `{"shop.orders": "created >= \'2026-01-01\'"}`. The binlog is not filtered',
        reads="servers",
    )
    reload: Reload | None = option(
        None,
        "",
        "ID: TABLES, such as fix-1: shop.orders",
        "Snapshots tables again in a query that has a checkpoint. Format: `ID: TABLES`, where"
        " TABLES uses the syntax of `tables`. Each ID runs once; use a new ID to reload again."
        " Streams only",
        reads="servers",
    )
    reload_after_ddl: Flag = option(
        False,
        "false",
        "true or false",
        "Whether a table is reloaded after DDL that rewrote its rows without row events."
        " Streams only",
        reads="servers",
    )
    payload: Payload | None = option(
        None,
        "",
        "json, struct or variant",
        "Type of `before` and `after`: `struct` (needs literal `tables`), `json` or `variant`."
        " Default: `struct` if `tables` is the name of one table, otherwise `json`",
    )
    max_bytes_per_trigger: Size = option(
        1 << 30,
        "1g",
        "a size above 0 such as 64m",
        "Limit of a batch in bytes of binlog. A batch has at least one transaction",
        gt=0,
        reads="streams",
    )
    max_rows_per_trigger: Number | None = option(
        None,
        "",
        "a number above 0",
        "Limit of a batch in rows. The nearer of both limits applies",
        gt=0,
        reads="streams",
    )
    ssl_mode: SslMode = option(
        "PREFERRED",
        "PREFERRED",
        "DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
        "TLS, as in MySQL's clients: `DISABLED`, `PREFERRED`, `REQUIRED`, `VERIFY_CA`,"
        " `VERIFY_IDENTITY`. Only the last two verify the server's certificate",
        reads="servers",
    )
    ssl_ca: Text | None = option(
        None,
        "",
        "the name of a PEM file",
        "Certificates of trusted authorities. The modes `VERIFY_…` require it, the others"
        " reject it",
        reads="servers",
    )
    ssl_cert: Text | None = option(
        None,
        "",
        "the name of a PEM file",
        "Certificate of the client. It needs `sslKey`",
        reads="servers",
    )
    ssl_key: Text | None = option(
        None,
        "",
        "the name of a PEM file",
        "Key of the client's certificate",
        reads="servers",
    )
    server_id: ServerIds = option(
        (1 << 30, (1 << 31) - 1),
        "1073741824-2147483647",
        "a number from 1 to 4294967295, or a range such as 600000-699999",
        "Replica id of each connection, drawn from this range. No other replica can use it."
        " MariaDB disconnects the older of two connections with the same one, also of one query:"
        " set a range of at least 10000 numbers there",
        reads="servers",
    )
    heartbeat_interval: Duration = option(
        10.0,
        "10s",
        "a duration from 1ms to 1d such as 10s",
        "Time after which a silent server sends a heartbeat. A connection counts as lost after"
        " three intervals without one, but not before 30s",
        ge=0.001,
        le=86400,
        reads="servers",
    )
    connect_timeout: Duration = option(
        10.0,
        "10s",
        "a duration from 1ms to 1d such as 10s",
        "Limit for each attempt to connect",
        ge=0.001,
        le=86400,
        reads="servers",
    )
    retry_timeout: Duration = option(
        600.0,
        "10m",
        "a duration such as 10m",
        "How long a lost connection is retried before the query fails; with `path`, how long a"
        " file is waited for that is missing or incomplete, while a later one is there",
        reads="streams",
    )
    idle_offset_interval: Duration = option(
        30.0,
        "30s",
        "a duration such as 30s",
        "How often the offset moves while only tables that are not captured change",
        reads="streams",
    )
    buffer_bytes: Size = option(
        64 << 20,
        "64m",
        "a size of at least 1m such as 64m",
        "Size of the binlog that the driver buffers ahead of Spark",
        ge=1 << 20,
        reads="streams",
    )
    # A task costs Spark as much as decoding some 50 MB.
    target_partition_bytes: Size = option(
        64 << 20,
        "64m",
        "a size above 0 such as 16m",
        "Approximate size of the binlog, or of the table chunk, that one task reads. A batch"
        " read of a server is one task",
        gt=0,
    )
    max_connections: Number = option(
        4,
        "4",
        "a number above 0",
        "How many executors read from the server at a time, in addition to the stream's own"
        " connections",
        gt=0,
        reads="streams",
    )
    snapshot_visibility_check: SnapshotVisibilityCheck = option(
        "auto",
        "auto",
        "auto, gtid, innodb_trx or lock",
        "How a snapshot verifies that its SELECT sees every transaction already in the binlog:"
        " `gtid` (MySQL 5.7 with `gtid_mode=ON`), `innodb_trx` (needs PROCESS), `lock` (a short"
        " LOCK TABLES … READ; needs LOCK TABLES). `auto` uses the first one available",
        reads="servers",
    )
    snapshot_exact_keyless: Flag = option(
        False,
        "false",
        "true or false",
        "Whether a table with neither a primary key nor a `UNIQUE` key of `NOT NULL` columns is"
        " snapshotted at an exact binlog position, which a row with `op` `t` marks (needs LOCK"
        " TABLES)",
        reads="servers",
    )
    fail_on_data_loss: Flag = option(
        True,
        "true",
        "true or false",
        "Whether the query stops if the binlog that it needs was purged. With `false` it continues"
        " at the beginning of the server's oldest file, with a warning, and a mirror reloads its"
        " tables",
        reads="servers",
    )
    retention_warning: Fraction = option(
        0.2,
        "0.2",
        "a number from 0 to 1 such as 0.2",
        "The query warns when less than this part of the server's retention time is left for the"
        " oldest binlog file that it needs. `0` never warns",
        reads="servers",
    )
    schema_evolution_mode: EvolutionMode = option(
        "addNewColumns",
        "addNewColumns",
        "addNewColumns, rescue, failOnNewColumns or none",
        "What happens with a column that a `struct` payload has no field for: `addNewColumns`"
        " stops before it if a restart adds it, otherwise rescues it; `rescue` delivers it in"
        " `_rescued_data`; `failOnNewColumns` stops; `none` ignores it",
    )
    schema_ddl: Text | None = option(
        None,
        "",
        "the name of a readable file in UTF-8",
        "File of CREATE TABLE statements, as `mysqldump --no-data` writes it: the tables at the"
        " beginning of the binlog that is read. It is read on the driver",
    )
    on_unknown_schema: OnUnknownSchema = option(
        "fail",
        "fail",
        "fail or positional",
        "What happens with rows of a table with unknown columns: `fail`, or `positional`, which"
        " names them `@1`, `@2`, … (`json` and `variant` only)",
    )
    time_type: TimeType = option(
        "string",
        "string",
        "string, interval or micros",
        "Type of TIME in a `struct` payload: `string` as in SELECT, `interval` (day to second),"
        " or `micros` (bigint)",
    )
    json_type: JsonType = option(
        "string",
        "string",
        "string, variant or text",
        "Type of JSON: `string` or `variant` in a `struct` payload. In a `json` payload a"
        " document is the value itself; with `text` it is a string with the document's text,"
        " which distinguishes JSON's own null from NULL",
    )
    zero_dates: ZeroDates = option(
        "null",
        "null",
        "null or fail",
        "What becomes of zero and invalid dates (`0000-00-00`, `2026-11-00`) in a `struct`"
        " payload: `null`, listed in `source.invalid_dates`, or `fail`",
    )
    tiny_int1_is_boolean: Flag = option(
        False,
        "false",
        "true or false",
        "Whether TINYINT(1) is a boolean in a `struct` payload: every value except 0 is true",
    )
