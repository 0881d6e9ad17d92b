"""How the options' texts become values: a type for each kind of option, and its field."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from pyspark_mysqlbinlog.connector.options.values import (
    Earliest,
    ExecutedGtids,
    FilePosition,
    HostPort,
    Latest,
    Snapshot,
    Timestamp,
    parse_bool,
    parse_conditions,
    parse_duration,
    parse_fraction,
    parse_hosts,
    parse_number,
    parse_place,
    parse_reload,
    parse_server_ids,
    parse_size,
)

__all__ = [
    "Conditions",
    "Duration",
    "EvolutionMode",
    "Flag",
    "Fraction",
    "Hosts",
    "JsonType",
    "LowerCaseTableNames",
    "Number",
    "OnUnknownSchema",
    "Operations",
    "Payload",
    "PlaceInLog",
    "Reload",
    "ServerIds",
    "Size",
    "SnapshotVisibilityCheck",
    "SslMode",
    "Text",
    "TimeType",
    "ZeroDates",
    "option",
]

Operation = Literal["insert", "update", "delete", "truncate", "ddl", "gap"]
_OPERATIONS: tuple[Operation, ...] = ("insert", "update", "delete", "truncate", "ddl", "gap")


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


Hosts = Annotated[tuple[HostPort, ...], BeforeValidator(lambda text: parse_hosts(text.strip()))]
Text = Annotated[str, BeforeValidator(_parse_text)]
Number = Annotated[int, BeforeValidator(lambda text: parse_number(text.strip()))]
Flag = Annotated[bool, BeforeValidator(lambda text: parse_bool(text.strip()))]
Fraction = Annotated[float, BeforeValidator(lambda text: parse_fraction(text.strip()))]
Duration = Annotated[float, BeforeValidator(lambda text: parse_duration(text.strip()))]
Size = Annotated[int, BeforeValidator(lambda text: parse_size(text.strip()))]
PlaceInLog = Annotated[
    Latest | Earliest | FilePosition | ExecutedGtids | Timestamp | Snapshot,
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
LowerCaseTableNames = Annotated[Literal["0", "1"], _choice("0", "1")]
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
SnapshotVisibilityCheck = Annotated[
    Literal["auto", "gtid", "innodb_trx", "lock"], _choice("auto", "gtid", "innodb_trx", "lock")
]
ZeroDates = Annotated[Literal["null", "fail"], _choice("null", "fail")]


# The reads that an option is for. Other reads reject it, with one exception: a batch read of a
# server ignores options of streams. They only tune and never decide which rows are returned, so
# one set of options works for both.
_Reads = Literal["all", "servers", "files", "streams", "batch reads"]


def option(
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
