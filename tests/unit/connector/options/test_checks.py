"""Options that depend on other options or on the kind of read."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StringType

from helpers.streams.refused_options import SECRET, SERVER, refused
from pyspark_mysqlbinlog.connector.options.model import FIELDS, field_info
from pyspark_mysqlbinlog.connector.source.datasource import MySQLBinlogDataSource
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.errors import OptionError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "option host is missing: set host for a server, or path for files"),
        ({"user": "u"}, "option host is missing"),
        ({"host": "h"}, "option user is missing"),
        (SERVER | {"path": "/logs"}, "options host and path cannot be combined"),
        ({"path": "/logs", "user": "u"}, "option user is for servers"),
        ({"path": "/logs", "port": "3306"}, "option port is for servers"),
        ({"path": "/logs", "SSLMODE": "REQUIRED"}, "option sslMode is for servers"),
        (SERVER | {"lowerCaseTableNames": "1"}, "option lowerCaseTableNames is for files and has"),
        ({"path": "/logs", "lowerCaseTableNames": "2"}, "lowerCaseTableNames: expected 0 or 1"),
        ({"path": "/logs", "password": SECRET}, "option password is for servers"),
        (
            SERVER | {"password": SECRET, "passwordFile": "f"},
            "options password and passwordFile cannot be combined",
        ),
        (SERVER | {"Port": "1", "pORT": "1"}, "option port: given twice"),
        (SERVER | {"sslCert": "c"}, "options sslCert and sslKey require each other"),
        (SERVER | {"sslKey": "k"}, "options sslCert and sslKey require each other"),
        (SERVER | {"sslMode": "disabled", "sslCa": "c"}, "option sslCa has no effect with sslMode"),
        (
            SERVER | {"sslCa": "c"},
            "which does not verify the server's certificate: set sslMode=VERIFY_CA or VERIFY_IDENT",
        ),
        (SERVER | {"sslCa": "c"}, "option sslCa has no effect with sslMode=PREFERRED, which does"),
        (SERVER | {"sslMode": "REQUIRED", "sslCa": "c"}, "option sslCa has no effect with sslMode"),
        (
            SERVER | {"sslMode": "DISABLED", "sslCert": "c", "sslKey": "k"},
            "option sslCert has no effect with sslMode=DISABLED: remove it",
        ),
        (
            SERVER | {"sslMode": "VERIFY_CA"},
            "option sslCa is missing: sslMode=VERIFY_CA requires it",
        ),
        (SERVER | {"sslMode": "verify_identity"}, "option sslCa is missing"),
        (SERVER | {"tables": "orders"}, "option tables: 'orders' is only a part of database.table"),
        (SERVER | {"excludeTables": "/(/"}, "option excludeTables: /(/ is not a valid regex"),
        (SERVER | {"excludeColumns": "a.b"}, "option excludeColumns: 'a.b' is only a part of"),
        (SERVER | {"payload": "struct"}, "option payload: struct requires the names of its tables"),
        (
            SERVER | {"payload": "struct", "tables": "a.b,a.c*"},
            "option payload: struct requires the names of its tables",
        ),
        (
            SERVER | {"payload": "struct", "tables": "a.b", "excludeTables": "a.*"},
            "option payload: struct requires the names of its tables",
        ),
        (
            SERVER | {"onUnknownSchema": "positional", "tables": "a.b"},
            "option onUnknownSchema: positional needs payload=json or variant",
        ),
        (
            SERVER | {"onUnknownSchema": "positional", "excludeColumns": "*.*.secret"},
            "options onUnknownSchema=positional and excludeColumns cannot be combined",
        ),
        (
            SERVER | {"schemaEvolutionMode": "rescue"},
            "option schemaEvolutionMode: 'rescue' is for payload=struct",
        ),
        (SERVER | {"timeType": "Micros"}, "option timeType: 'Micros' is for payload=struct"),
        (
            SERVER | {"tables": "a.b", "payload": "struct", "jsonType": "text"},
            "option jsonType: 'text' is for payload=json",
        ),
        (SERVER | {"payload": "variant", "jsonType": "text"}, "is for payload=struct"),
        (SERVER | {"jsonType": "variant"}, "option jsonType: 'variant' is for payload=struct"),
        (
            SERVER | {"zeroDates": "fail", "payload": "variant"},
            "option zeroDates: 'fail' is for payload=struct and has no effect with payload=variant",
        ),
        (SERVER | {"tinyInt1IsBoolean": "true"}, "option tinyInt1IsBoolean: 'true' is for payload"),
    ],
)
def test_missing_or_conflicting_options_are_rejected(options: dict[str, str], message: str) -> None:
    assert message in refused(options)


# (options, the option that a stream rejects)
@pytest.mark.parametrize(
    ("options", "refused_name"),
    [
        (SERVER, None),
        (SERVER | {"startingOffset": "earliest", "maxRowsPerTrigger": "5"}, None),
        (SERVER | {"endingOffset": "b.000001:4"}, "endingOffset"),
        # Also with its default value: a stream does not end there.
        (SERVER | {"endingOffset": "latest"}, "endingOffset"),
        ({"path": "/logs", "maxRowsPerTrigger": "5"}, None),
        ({"path": "/logs", "endingOffset": "latest"}, "endingOffset"),
    ],
)
def test_stream_rejects_options_of_batch_reads(
    options: dict[str, str], refused_name: str | None
) -> None:
    source = MySQLBinlogDataSource(options)
    schema = output_schema(StringType())
    if refused_name is None:
        source.streamReader(schema)
        return
    # Errors of `streamReader` are not shown, and any of these may be the first call.
    reader = pickle.loads(pickle.dumps(source.streamReader(schema)))
    calls: list[Callable[[], object]] = [
        reader.initialOffset,
        reader.prepareForTriggerAvailableNow,
        lambda: reader.latestOffset({}, reader.getDefaultReadLimit()),
        lambda: reader.partitions({}, {}),
        lambda: list(reader.read(InputPartition(None))),
    ]
    for call in calls:
        with pytest.raises(OptionError) as caught:
            call()
    assert str(caught.value) == (
        f"option {refused_name} is for batch reads: use spark.read, or remove it for a stream"
    )


def test_batch_read_accepts_stream_options_for_a_server_but_not_for_files() -> None:
    """These options only tune a read, so one set of options can serve both kinds of read."""
    streams = [name for name in FIELDS if field_info(name, "reads") == "streams"]
    assert set(streams) == {
        "maxBytesPerTrigger", "maxRowsPerTrigger", "bufferBytes", "idleOffsetInterval",
        "retryTimeout", "maxConnections", "acceptChangedTransforms",
    }  # fmt: skip
    shown = {name: field_info(name, "shown") or "5" for name in streams}
    MySQLBinlogDataSource(SERVER | shown).reader(output_schema(StringType()))
    for name in streams:
        source = MySQLBinlogDataSource({"path": "/logs", name: shown[name]})
        with pytest.raises(OptionError, match=f"option {name} is for streams"):
            source.reader(output_schema(StringType()))
