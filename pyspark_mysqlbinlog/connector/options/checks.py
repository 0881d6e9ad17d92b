"""What options want of one another, which none of them can tell by itself."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic.alias_generators import to_camel

from pyspark_mysqlbinlog.connector.options.model import Options, told
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table

__all__ = ["check_batch", "check_condition_tables", "check_stream", "check_together"]

_OF_STRUCTS = (
    "schema_evolution_mode",
    "time_type",
    "json_type",
    "zero_dates",
    "tiny_int1_is_boolean",
)


def check_together(options: Options, texts: Mapping[str, str], reads: Mapping[str, str]) -> None:
    """OptionError for options at odds with one another.

    Parameters
    ----------
    texts : what was given, by Spark's names of the options.
    reads : by name, what kind of read each option is for.
    """
    _check_source(options, texts, reads)
    _check_tls(options, texts)
    _check_load(options, texts)
    if options.snapshot_exact_keyless and "variant" in (options.payload_kind, options.json_type):
        raise OptionError(
            "option snapshotExactKeyless: a table with documents as VARIANTs may be read twice; set"
            " payload=json, or jsonType=string with payload=struct"
        )
    options.table_filter(True)
    options.column_filter(True)
    if options.on_unknown_schema == "positional":
        _check_positional(options)
    if options.payload_kind == "struct":
        _check_struct(options)
    else:
        _check_no_struct_options(options, texts)


def _check_source(options: Options, texts: Mapping[str, str], reads: Mapping[str, str]) -> None:
    """A server or files, with what belongs to it."""
    if options.host is None and options.path is None:
        raise OptionError("option host is missing: give host for a server, or path for files")
    if options.host is not None and options.path is not None:
        raise OptionError("options host and path exclude each other: leave one out")
    if options.path is not None:
        for name, kind in reads.items():
            if name in texts and kind in ("servers", "streams"):
                raise OptionError(
                    f"option {name} is for {kind} and means nothing with path: leave it out"
                )
    elif options.user is None:
        raise OptionError("option user is missing: host needs an account")
    if options.password is not None and options.password_file is not None:
        raise OptionError("options password and passwordFile exclude each other: leave one out")


def _check_load(options: Options, texts: Mapping[str, str]) -> None:
    """What goes with a first load."""
    if options.loads and options.path is not None:
        raise OptionError(
            "option startingOffset: snapshot reads the tables of a server, and path has none; give"
            " host, or another start"
        )
    if options.loads and "endingOffset" in texts:
        raise OptionError(
            "options startingOffset=snapshot and endingOffset exclude each other: a batch read of"
            " the tables as they are has nothing of the log; leave one out"
        )
    filters = [options.table_filter(case_sensitive) for case_sensitive in (True, False)]
    for table in options.conditions(True):
        if not any(tables.wants(*table) for tables in filters):
            raise _unwanted_condition(table)
    if options.reload is not None:
        options.reload_filter(True)


def check_condition_tables(options: Options, case_sensitive: bool) -> None:
    """OptionError where a condition is for a table that is not wanted, when the server was asked.

    case_sensitive : whether it tells names of tables by case.
    """
    tables = options.table_filter(case_sensitive)
    for table in options.conditions(case_sensitive):
        if not tables.wants(*table):
            raise _unwanted_condition(table)


def _unwanted_condition(table: Table) -> OptionError:
    return OptionError(
        f"option snapshotWhere: {'.'.join(table)} is not among the wanted tables; correct"
        " its name, or the option tables"
    )


def _check_tls(options: Options, texts: Mapping[str, str]) -> None:
    mode = options.ssl_mode
    if (options.ssl_cert is None) != (options.ssl_key is None):
        raise OptionError("options sslCert and sslKey need each other: give both or neither")
    if mode == "DISABLED" and "sslCert" in texts:
        raise OptionError("option sslCert means nothing with sslMode=DISABLED: leave it out")
    verifies = mode in ("VERIFY_CA", "VERIFY_IDENTITY")
    if verifies and options.ssl_ca is None:
        # As MySQL's clients; without authorities pymysql would check less than was asked for.
        raise OptionError(f"option sslCa is missing: sslMode={mode} needs it")
    if not verifies and options.ssl_ca is not None:
        # Whoever gives it believes that the server is verified.
        raise OptionError(
            f"option sslCa means nothing with sslMode={mode}, which does not verify the server's"
            " certificate: set sslMode=VERIFY_CA or VERIFY_IDENTITY, or leave sslCa out"
        )


def _check_positional(options: Options) -> None:
    if options.payload_kind == "struct":
        raise OptionError(
            "option onUnknownSchema: positional needs payload=json or variant; a struct's columns"
            " must be known"
        )
    if options.exclude_columns is not None:
        # By names that are not known nothing can be kept out.
        raise OptionError(
            "options onUnknownSchema=positional and excludeColumns exclude each other: columns"
            " without names can't be told apart; leave one out"
        )


def _check_struct(options: Options) -> None:
    tables = options.table_filter(True)
    if not tables.is_literal or not tables.literals:
        raise OptionError(
            "option payload: struct needs the names of its tables; give tables as database.table"
            " without globs, or set payload=json or variant"
        )
    if options.json_type == "text":
        raise OptionError(
            "option jsonType: 'text' is for payload=json; set jsonType=string or variant"
        )


def _check_no_struct_options(options: Options, texts: Mapping[str, str]) -> None:
    for field in _OF_STRUCTS:
        value = getattr(options, field)
        if (options.payload_kind, field, value) == ("json", "json_type", "text"):
            continue
        if value != type(options).model_fields[field].default:
            name = to_camel(field)
            raise OptionError(
                f"option {name}: {texts[name].strip()!r} is for payload=struct and means nothing"
                f" with payload={options.payload_kind}; leave it out, or set payload=struct"
            )


def check_batch(options: Options) -> None:
    """OptionError when one is given that would have to do something in a stream."""
    if options.reload is not None:
        raise OptionError(
            "option reload is for streams: a batch read has no checkpoint; use"
            " startingOffset=snapshot to read the tables as they are"
        )
    if options.reload_after_ddl:
        raise OptionError(
            "option reloadAfterDdl is for streams: a batch read ends before it could load a table"
            " again; leave it out"
        )


def check_stream(options: Options) -> None:
    """OptionError when one is given that is for batch reads only."""
    for name in sorted(map(to_camel, options.model_fields_set)):
        if told(name, "reads") == "batch reads":
            instead = "give host" if name == "path" else "leave it out"
            raise OptionError(
                f"option {name} is for batch reads: use spark.read, or {instead} for a stream"
            )
