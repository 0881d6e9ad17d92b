"""The options model: parsed values, one-line errors, and no secrets in texts."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from helpers.streams.refused_options import SECRET, SERVER, refused
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.connector.options.model import FIELDS
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.options.values import (
    Earliest,
    ExecutedGtids,
    FilePosition,
    Latest,
    Timestamp,
)
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.protocol.server.client import ServerSettings

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
GTIDS = ExecutedGtids(GtidSet.parse(f"{UUID}:1-5"))


def test_omitted_options_have_their_defaults() -> None:
    options = parse_options(SERVER)
    assert (options.host, options.port, options.user) == ((("db", None),), 3306, "repl")
    assert options.password is None
    assert options.operations == {"insert", "update", "delete", "truncate"}
    assert (options.payload, options.payload_kind) == (None, "json")
    assert (options.starting_offset, options.ending_offset) == (None, Latest())
    assert options.server_id == (2**30, 2**31 - 1)


@pytest.mark.parametrize("name", FIELDS)
def test_documented_option_default_equals_the_actual_default(name: str) -> None:
    extra = FIELDS[name].json_schema_extra
    assert isinstance(extra, dict)
    assert extra["expects"]
    shown = extra["shown"]
    if shown == "":
        assert FIELDS[name].default is None
    else:
        field = re.sub("[A-Z]|1", lambda m: "_" + m[0].lower(), name).replace("_1", "1")
        assert getattr(parse_options(SERVER | {name: str(shown)}), field) == FIELDS[name].default


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("PORT", "3307", "port", 3307),
        ("port", " 3307 ", "port", 3307),
        ("host", " 10.0.0.1 ", "host", (("10.0.0.1", None),)),
        ("host", "::1", "host", (("::1", None),)),
        ("host", "db1,db2:3307", "host", (("db1", None), ("db2", 3307))),
        ("host", "[fe80::1]:3307, db-2.lan", "host", (("fe80::1", 3307), ("db-2.lan", None))),
        ("password", " spaces kept ", "password", SecretStr(" spaces kept ")),
        ("password", "", "password", SecretStr("")),
        ("operations", "insert", "operations", frozenset({"insert"})),
        ("operations", "insert, DDL", "operations", frozenset({"insert", "ddl"})),
        ("onUnknownSchema", "Positional", "on_unknown_schema", "positional"),
        ("schemaDdl", "schema.sql", "schema_ddl", "schema.sql"),
        ("operations", " Insert, DELETE ", "operations", frozenset({"insert", "delete"})),
        ("startingOffset", "latest", "starting_offset", Latest()),
        ("startingOffset", "EARLIEST", "starting_offset", Earliest()),
        ("startingOffset", "m.000007:4", "starting_offset", FilePosition("m.000007", 4)),
        ("startingOffset", "b.1:5000000000", "starting_offset", FilePosition("b.1", 5000000000)),
        ("startingOffset", "2026-11-20", "starting_offset", Timestamp(1795132800.0)),
        ("startingOffset", "2026-11-20T10:00", "starting_offset", Timestamp(1795168800.0)),
        ("startingOffset", "2026-11-20 10:00:00", "starting_offset", Timestamp(1795168800.0)),
        ("startingOffset", "2026-11-20T10:00:00.5Z", "starting_offset", Timestamp(1795168800.5)),
        ("startingOffset", "2026-11-20T12:00:00+02:00", "starting_offset", Timestamp(1795168800.0)),
        ("startingOffset", f"gtid:{UUID}:1-5", "starting_offset", GTIDS),
        ("endingOffset", f"GTID: {UUID.upper()}:1-5", "ending_offset", GTIDS),
        ("endingOffset", "m.000007:120", "ending_offset", FilePosition("m.000007", 120)),
        ("endingOffset", "2026-11-20T10:00:00", "ending_offset", Timestamp(1795168800.0)),
        ("payload", "JSON", "payload", "json"),
        ("maxBytesPerTrigger", "100k", "max_bytes_per_trigger", 102400),
        ("maxBytesPerTrigger", "64M", "max_bytes_per_trigger", 64 << 20),
        ("maxBytesPerTrigger", "1gb", "max_bytes_per_trigger", 1 << 30),
        ("maxBytesPerTrigger", "12345", "max_bytes_per_trigger", 12345),
        ("maxRowsPerTrigger", "10", "max_rows_per_trigger", 10),
        ("sslMode", "required", "ssl_mode", "REQUIRED"),
        ("serverId", "6000", "server_id", (6000, 6000)),
        ("serverId", "6000-6100", "server_id", (6000, 6100)),
        ("serverId", "1-4294967295", "server_id", (1, 4294967295)),
        ("heartbeatInterval", "500ms", "heartbeat_interval", 0.5),
        ("connectTimeout", "3s", "connect_timeout", 3.0),
        ("retryTimeout", "0s", "retry_timeout", 0.0),
        ("retryTimeout", "1h", "retry_timeout", 3600.0),
        ("retryTimeout", "2 D", "retry_timeout", 172800.0),
        ("idleOffsetInterval", "1.5m", "idle_offset_interval", 90.0),
        ("bufferBytes", "1m", "buffer_bytes", 1 << 20),
        ("targetPartitionBytes", "16m", "target_partition_bytes", 16 << 20),
        ("failOnDataLoss", "TRUE", "fail_on_data_loss", True),
        ("failOnDataLoss", "false", "fail_on_data_loss", False),
        ("retentionWarning", "0", "retention_warning", 0.0),
        ("retentionWarning", " .25 ", "retention_warning", 0.25),
        ("retentionWarning", "0.9", "retention_warning", 0.9),
        ("retentionWarning", "1.0", "retention_warning", 1.0),
        ("operations", "Gap, ddl", "operations", frozenset({"gap", "ddl"})),
        ("tinyInt1IsBoolean", "False", "tiny_int1_is_boolean", False),
        ("schemaEvolutionMode", "addnewcolumns", "schema_evolution_mode", "addNewColumns"),
    ],
)  # fmt: skip
def test_option_text_is_parsed_to_its_value(name: str, text: str, field: str, value: Any) -> None:
    assert getattr(parse_options(SERVER | {name: text}), field) == value


# Each error has the option's name, the expected form and the value that was found.
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("host", ""),
        ("host", " "),
        ("port", "mysql"),
        ("port", "0"),
        ("port", "65536"),
        ("port", "-1"),
        ("port", "3_306"),
        ("port", "٣"),
        ("port", "9" * 5000),
        ("user", ""),
        ("tables", " "),
        ("operations", ""),
        ("operations", "insert,upsert"),
        ("operations", "insert,"),
        ("startingOffset", "now"),
        ("startingOffset", "gtid:now"),
        ("host", "db1,,db2"),
        ("host", "db1,db1"),
        ("host", "db1:0"),
        ("host", "db1:65536"),
        ("host", "db1 db2"),
        ("startingOffset", "mysql-bin.000001"),
        ("startingOffset", "mysql-bin.000001:3"),
        ("startingOffset", "mysql-bin.000001:-4"),
        ("startingOffset", "/var/log/mysql-bin.000001:4"),
        ("startingOffset", ":4"),
        ("startingOffset", "2026-13-01"),
        ("startingOffset", "2026-11-20T25:00"),
        ("startingOffset", "2026-11-20T"),
        ("endingOffset", "earliest"),
        ("endingOffset", "snapshot"),
        ("endingOffset", "10"),
        ("payload", "xml"),
        ("maxBytesPerTrigger", "0"),
        ("maxBytesPerTrigger", "1.5g"),
        ("maxBytesPerTrigger", "-1"),
        ("maxBytesPerTrigger", "1x"),
        ("maxRowsPerTrigger", "0"),
        ("maxRowsPerTrigger", "1k"),
        ("sslMode", "on"),
        ("serverId", "0"),
        ("serverId", "4294967296"),
        ("serverId", "10-5"),
        ("serverId", "a-b"),
        ("heartbeatInterval", "0s"),
        ("heartbeatInterval", "2d"),
        ("heartbeatInterval", "10"),
        ("heartbeatInterval", "-1s"),
        ("heartbeatInterval", "1w"),
        ("connectTimeout", "0ms"),
        ("retryTimeout", "for ever"),
        ("retryTimeout", "9" * 400 + "s"),
        ("bufferBytes", "1023k"),
        ("targetPartitionBytes", "0"),
        ("maxConnections", "0"),
        ("failOnDataLoss", "yes"),
        ("retentionWarning", "1.1"),
        ("retentionWarning", "-0.1"),
        ("retentionWarning", "20%"),
        ("retentionWarning", "nan"),
        ("schemaEvolutionMode", "merge"),
        ("onUnknownSchema", "ignore"),
        ("timeType", "long"),
        ("jsonType", "map"),
        ("zeroDates", "keep"),
        ("tinyInt1IsBoolean", "1"),
    ],
)
def test_wrong_option_value_is_rejected_with_expected_and_found_value(name: str, text: str) -> None:
    extra = FIELDS[name].json_schema_extra
    assert isinstance(extra, dict)
    message = refused(SERVER | {name: text})
    shown = text if len(text) <= 80 else text[:77] + "..."
    assert message == f"option {name}: expected {extra['expects']}, found {shown!r}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pasword", "did you mean password?"),
        ("table", "did you mean tables?"),
        ("startOffset", "did you mean startingOffset?"),
        ("STARTINGOFFSETS", "did you mean startingOffset?"),
        ("hostname", "did you mean host?"),
        ("username", "did you mean user?"),
        ("server_id", "did you mean serverId?"),
        ("starting_offset", "did you mean startingOffset?"),
        ("maxOffsetsPerTrigger", "did you mean maxRowsPerTrigger?"),
        ("zzz", "docs/reference/options.md lists them all"),
    ],
)
def test_unknown_option_is_rejected_with_a_hint(name: str, hint: str) -> None:
    message = refused(SERVER | {name: SECRET})
    assert message == f"unknown option {name!r}: {hint}"


@pytest.mark.parametrize(
    ("streaming", "options", "place"),
    [
        (True, SERVER, Latest()),
        (False, SERVER, Earliest()),
        (False, {"path": "/logs"}, Earliest()),
        (True, {"path": "/logs"}, Earliest()),
        (True, SERVER | {"startingOffset": "earliest"}, Earliest()),
        (False, SERVER | {"startingOffset": "b.1:4"}, FilePosition("b.1", 4)),
    ],
)
def test_start_is_the_given_offset_or_the_default_of_the_read(
    streaming: bool, options: dict[str, str], place: object
) -> None:
    assert parse_options(options).place_to_start(streaming=streaming) == place


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({}, "json"),
        ({"tables": "a.b"}, "struct"),
        ({"tables": "`a.b`.`c*`"}, "struct"),
        ({"tables": "a.b, a.b"}, "struct"),
        ({"tables": "a.b, a.c"}, "json"),
        ({"tables": "a.b, a.c", "excludeTables": "a.c"}, "struct"),
        ({"tables": "a.b, a.c*"}, "json"),
        ({"tables": "/a[.]b/"}, "json"),
        ({"tables": "a.b", "payload": "json"}, "json"),
        ({"tables": "a.b", "payload": "Variant"}, "variant"),
        ({"tables": "a.b, a.c", "payload": "STRUCT"}, "struct"),
    ],
)
def test_payload_defaults_to_struct_only_for_one_named_table(
    given: dict[str, str], kind: str
) -> None:
    assert parse_options(SERVER | given).payload_kind == kind


def test_struct_options_are_taken_from_the_options() -> None:
    shaped = {"timeType": "interval", "jsonType": "variant", "zeroDates": "fail"}
    given = SERVER | {"tables": "a.b", "tinyInt1IsBoolean": "true"} | shaped
    assert parse_options(given).struct_options == StructOptions("interval", "variant", "fail", True)
    assert parse_options(SERVER).struct_options == StructOptions()


def test_table_filter_of_options_respects_case_sensitivity() -> None:
    options = parse_options(SERVER | {"tables": "Shop.*", "excludeTables": "shop.audit"})
    assert options.table_filter(True).captures("Shop", "audit")
    assert not options.table_filter(case_sensitive=False).captures("Shop", "audit")


def test_server_settings_have_the_options_and_hide_the_password() -> None:
    options = parse_options(
        SERVER
        | {"port": "3307", "password": SECRET, "sslMode": "VERIFY_CA", "sslCa": "ca.pem"}
        | {"sslCert": "c.pem", "sslKey": "k.pem", "connectTimeout": "3s"}
        | {"heartbeatInterval": "2s", "serverId": "6000-6100"}
    )
    assert options.server_settings() == ServerSettings(
        host="db",
        port=3307,
        user="repl",
        password=SECRET,
        ssl_mode="VERIFY_CA",
        ssl_ca="ca.pem",
        ssl_cert="c.pem",
        ssl_key="k.pem",
        connect_timeout=3.0,
        heartbeat_interval=2.0,
        server_ids=(6000, 6100),
    )
    assert SECRET not in repr(options.server_settings())
    assert parse_options(SERVER).server_settings() == ServerSettings("db", 3306, "repl", "")
    with pytest.raises(OptionError, match="there is no server"):
        parse_options({"path": "/logs"}).server_settings()


# --- secrets


@pytest.mark.parametrize(
    ("content", "password"),
    [
        ("pw", "pw"),
        ("pw\n", "pw"),
        ("pw\r\n", "pw"),
        ("pw\n\n", "pw\n"),
        (" pw ", " pw "),
        ("", ""),
        ("pässwörd\n", "pässwörd"),
    ],
)
def test_password_file_is_read_without_its_last_line_break(
    tmp_path: Path, content: str, password: str
) -> None:
    file = tmp_path / "password"
    file.write_bytes(content.encode())
    options = parse_options(SERVER | {"passwordFile": str(file)})
    assert options.password is not None
    assert options.password.get_secret_value() == password


def test_unreadable_password_file_is_rejected_without_showing_its_content(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    message = refused(SERVER | {"passwordFile": missing})
    assert message == (
        f"option passwordFile: {missing!r} can't be read: No such file or directory; it must be"
        " readable on the driver"
    )
    assert "Is a directory" in refused(SERVER | {"passwordFile": str(tmp_path)})
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe" + SECRET.encode())
    assert SECRET not in refused(SERVER | {"passwordFile": str(binary)})


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"port": "x"},
        {"pasword2": SECRET},
        {"payload": "struct"},
        {"path": "p"},
        {"PASSWORD": SECRET},
    ],
)
def test_option_errors_and_reprs_never_show_the_password(wrong: dict[str, str]) -> None:
    given = SERVER | {"password": SECRET} | wrong
    if wrong:
        with pytest.raises(OptionError) as caught:
            parse_options(given)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert SECRET not in repr(caught.value)
    else:
        options = parse_options(given)
        assert SECRET not in repr(options) + str(options) + options.model_dump_json()


def test_pickled_options_keep_the_password() -> None:
    options = parse_options(SERVER | {"password": SECRET, "startingOffset": "b.000001:4"})
    copy = pickle.loads(pickle.dumps(options))
    assert copy == options
    assert copy.password.get_secret_value() == SECRET


def test_options_are_immutable() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse_options(SERVER).port = 1  # type: ignore[misc] # the assignment is tested


def test_package_import_does_not_import_pydantic() -> None:
    code = "import sys, pyspark_mysqlbinlog; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
