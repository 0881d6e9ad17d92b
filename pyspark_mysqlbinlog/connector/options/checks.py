"""Checks of options that depend on each other."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic.alias_generators import to_camel

from pyspark_mysqlbinlog.connector.options.model import Options, field_info
from pyspark_mysqlbinlog.connector.options.transforms import (
    MIN_SECRET_BYTES,
    masks_of,
    row_conditions,
)
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table

__all__ = [
    "check_batch",
    "check_condition_tables",
    "check_mask_secret",
    "check_stream",
    "check_together",
]

_OF_STRUCTS = (
    "schema_evolution_mode",
    "time_type",
    "json_type",
    "zero_dates",
    "tiny_int1_is_boolean",
)


def check_together(options: Options, texts: Mapping[str, str], reads: Mapping[str, str]) -> None:
    """Raise OptionError for options that conflict with each other.

    Parameters
    ----------
    texts : the given texts, by Spark's names of the options.
    reads : by name, the kind of read that each option is for.
    """
    _check_source(options, texts, reads)
    _check_tls(options, texts)
    _check_load(options, texts)
    options.table_filter(True)
    options.column_filter(True)
    _check_transforms(options)
    if options.on_unknown_schema == "positional":
        _check_positional(options)
    if options.payload_kind == "struct":
        _check_struct(options)
    else:
        _check_no_struct_options(options, texts)


def _check_source(options: Options, texts: Mapping[str, str], reads: Mapping[str, str]) -> None:
    """Check that either a server or files are given, with the options that belong to them."""
    if options.host is None and options.path is None:
        raise OptionError("option host is missing: set host for a server, or path for files")
    if options.host is not None and options.path is not None:
        raise OptionError("options host and path cannot be combined: remove one of them")
    others, given = ("servers", "path") if options.path is not None else ("files", "host")
    for name, kind in reads.items():
        if name in texts and kind == others:
            raise OptionError(
                f"option {name} is for {others} and has no effect with {given}: remove it"
            )
    if options.path is None and options.user is None:
        raise OptionError("option user is missing: host needs an account")
    if options.password is not None and options.password_file is not None:
        raise OptionError("options password and passwordFile cannot be combined: remove one")


def _check_load(options: Options, texts: Mapping[str, str]) -> None:
    """Check the options of a snapshot."""
    if options.starts_with_snapshot and options.path is not None:
        raise OptionError(
            "option startingOffset: snapshot reads the tables of a server, and path has none; set"
            " host, or another start"
        )
    if options.starts_with_snapshot and "endingOffset" in texts:
        raise OptionError(
            "options startingOffset=snapshot and endingOffset cannot be combined: a batch read of"
            " current tables reads no binlog; remove one of them"
        )
    filters = [options.table_filter(case_sensitive) for case_sensitive in (True, False)]
    for table in options.conditions(True):
        if not any(tables.captures(*table) for tables in filters):
            raise _unwanted_condition(table)
    if options.reload is not None:
        options.reload_filter(True)


def check_condition_tables(options: Options, case_sensitive: bool) -> None:
    """Raise OptionError if a condition is for a table that is not captured.

    case_sensitive : whether the server distinguishes names of tables by case.
    """
    tables = options.table_filter(case_sensitive)
    for table in options.conditions(case_sensitive):
        if not tables.captures(*table):
            raise _unwanted_condition(table)


def _unwanted_condition(table: Table) -> OptionError:
    return OptionError(
        f"option snapshotWhere: {'.'.join(table)} is not among the captured tables; correct"
        " its name, or the option tables"
    )


def _check_tls(options: Options, texts: Mapping[str, str]) -> None:
    mode = options.ssl_mode
    if (options.ssl_cert is None) != (options.ssl_key is None):
        raise OptionError("options sslCert and sslKey require each other: set both or neither")
    if mode == "DISABLED" and "sslCert" in texts:
        raise OptionError("option sslCert has no effect with sslMode=DISABLED: remove it")
    verifies = mode in ("VERIFY_CA", "VERIFY_IDENTITY")
    if verifies and options.ssl_ca is None:
        # As in MySQL's clients; without authorities pymysql would verify less than requested.
        raise OptionError(f"option sslCa is missing: sslMode={mode} requires it")
    if not verifies and options.ssl_ca is not None:
        # A user who sets it expects that the server is verified.
        raise OptionError(
            f"option sslCa has no effect with sslMode={mode}, which does not verify the server's"
            " certificate: set sslMode=VERIFY_CA or VERIFY_IDENTITY, or remove sslCa"
        )


def _check_positional(options: Options) -> None:
    if options.payload_kind == "struct":
        raise OptionError(
            "option onUnknownSchema: positional needs payload=json or variant; a struct's columns"
            " must be known"
        )
    if options.exclude_columns is not None:
        # Columns without known names can't be excluded by name.
        raise OptionError(
            "options onUnknownSchema=positional and excludeColumns cannot be combined: columns"
            " without names can't be excluded by name; remove one of them"
        )


def _check_struct(options: Options) -> None:
    tables = options.table_filter(True)
    if not tables.is_literal or not tables.literals:
        raise OptionError(
            "option payload: struct requires the names of its tables; set tables to database.table"
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
                f"option {name}: {texts[name].strip()!r} is for payload=struct and has no effect"
                f" with payload={options.payload_kind}; remove it, or set payload=struct"
            )


def _check_transforms(options: Options) -> None:
    """Check the options of masks and of filtered rows."""
    if options.mask_secret is not None and options.mask_secret_file is not None:
        raise OptionError("options maskSecret and maskSecretFile cannot be combined: remove one")
    if not options.has_transforms:
        return
    options.transforms(True)
    named = "maskColumns" if options.mask_columns is not None else "rowFilter"
    if options.on_unknown_schema == "positional":
        raise OptionError(
            f"options onUnknownSchema=positional and {named} cannot be combined: columns without"
            " names are not known to be those of the option; remove one of them"
        )
    if options.snapshot_where is not None:
        raise OptionError(
            f"options snapshotWhere and {named} cannot be combined: rows are looked up on the"
            " server by values that may not leave it; use rowFilter instead of snapshotWhere"
        )
    if options.row_filter is not None:
        lacking = sorted({"insert", "update", "delete"} - options.operations)
        if lacking:
            raise OptionError(
                "options rowFilter and operations cannot be combined without insert, update and"
                f" delete: an update can become any of them; add {lacking[0]}"
            )
        filters = [options.table_filter(case_sensitive) for case_sensitive in (True, False)]
        for table in row_conditions(options.row_filter, True):
            if not any(tables.captures(*table) for tables in filters):
                raise OptionError(
                    f"option rowFilter: {'.'.join(table)} is not among the captured tables; correct"
                    " its name, or the option tables"
                )


def check_mask_secret(options: Options) -> None:
    """Raise OptionError unless there is a secret exactly if a mask needs one.

    options : with the content of `maskSecretFile` as the secret.
    """
    secret = options.mask_secret
    hashes = any(mask.kind == "hash" for mask in masks_of(options.mask_columns).values())
    if hashes and secret is None:
        raise OptionError("option maskSecret is missing: the mask hash needs it, or maskSecretFile")
    if secret is None:
        return
    if not hashes:
        raise OptionError(
            "option maskSecret has no effect without the mask hash in maskColumns: remove it"
        )
    if len(secret.get_secret_value().encode("utf-8", "surrogatepass")) < MIN_SECRET_BYTES:
        raise OptionError(
            f"option maskSecret: expected at least {MIN_SECRET_BYTES} bytes, found fewer; a short"
            " one can be guessed from hashes of known values"
        )


def check_batch(options: Options) -> None:
    """Raise OptionError for an option that requires a stream."""
    if options.reload is not None:
        raise OptionError(
            "option reload is for streams: a batch read has no checkpoint; use"
            " startingOffset=snapshot to read the current tables"
        )
    if options.reload_after_ddl:
        raise OptionError(
            "option reloadAfterDdl is for streams: a batch read ends before it could reload a"
            " table; remove it"
        )
    for name in sorted(map(to_camel, options.model_fields_set)):
        if options.path is not None and field_info(name, "reads") == "streams":
            raise OptionError(
                f"option {name} is for streams and has no effect in a batch read with path: remove"
                " it"
            )


def check_stream(options: Options) -> None:
    """Raise OptionError for an option that is for batch reads only."""
    for name in sorted(map(to_camel, options.model_fields_set)):
        if field_info(name, "reads") == "batch reads":
            raise OptionError(
                f"option {name} is for batch reads: use spark.read, or remove it for a stream"
            )
