"""Tables of the data source's options, from the model that parses them."""

from __future__ import annotations

import re
from typing import Any

from pyspark_mysqlbinlog.connector.options.model import FIELDS

__all__ = ["option_table"]

# Each option is in one group, in the order of the page.
_GROUPS = {
    "connection": (
        "host",
        "failover",
        "preferReplica",
        "port",
        "user",
        "password",
        "passwordFile",
        "sslMode",
        "sslCa",
        "sslCert",
        "sslKey",
        "serverId",
        "heartbeatInterval",
        "connectTimeout",
        "retryTimeout",
    ),
    "selection": ("tables", "excludeTables", "excludeColumns", "operations"),
    "transforms": (
        "maskColumns",
        "maskSecret",
        "maskSecretFile",
        "rowFilter",
        "acceptChangedTransforms",
    ),
    "start": ("startingOffset", "endingOffset", "failOnDataLoss", "retentionWarning"),
    "snapshot": (
        "snapshotWhere",
        "reload",
        "reloadAfterDdl",
        "snapshotVisibilityCheck",
        "snapshotExactKeyless",
    ),
    "output": ("payload", "timeType", "jsonType", "zeroDates", "tinyInt1IsBoolean"),
    "limits": (
        "maxBytesPerTrigger",
        "maxRowsPerTrigger",
        "idleOffsetInterval",
        "bufferBytes",
        "targetPartitionBytes",
        "maxConnections",
    ),
    "schema": ("schemaEvolutionMode", "onUnknownSchema", "schemaDdl"),
    "files": ("path", "lowerCaseTableNames"),
}

# The first words of what an option expects -> the name of its type.
_TYPES = {
    "true or false": "boolean",
    "a duration": "duration",
    "a size": "size",
    "a number from 1 to 4294967295, or a range": "integer or range",
    "a number from 0 to 1 ": "number",
    "a number": "integer",
    "a list": "list",
    "a JSON object": "JSON object",
    "a host": "string",
    "an account": "string",
    "a text": "string",
    "a file, a glob or a folder": "path or glob",
    "the name of": "path",
    "latest, ": "position or time",
}
_READS = {
    "all": "all",
    "servers": "server",
    "files": "files",
    "streams": "stream",
    "batch reads": "batch",
}


def option_table(group: str) -> str:
    """Return the table of one group of options."""
    grouped = [name for names in _GROUPS.values() for name in names]
    if sorted(grouped) != sorted(FIELDS):
        raise ValueError(f"options without a group, or in two: {set(grouped) ^ set(FIELDS)}")
    lines = ["| option | type | default | read | meaning |", "|---|---|---|---|---|"]
    lines += map(_row, _GROUPS[group])
    return "\n".join(lines)


def _row(name: str) -> str:
    field = FIELDS[name]
    extra: Any = field.json_schema_extra
    default = f"`{extra['shown']}`" if extra["shown"] else ""
    reads, meaning = extra["reads"], str(field.description)
    # What the column of reads says is not repeated.
    for kind in ("streams", "batch reads"):
        suffix = re.compile(rf"[.;] {kind} only$", re.IGNORECASE)
        if suffix.search(meaning):
            reads, meaning = kind, suffix.sub("", meaning)
    meaning = meaning[:1].upper() + meaning[1:].rstrip(".") + "."
    # The page may be read on GitHub, where a cell ends at each bar.
    cells = (f"`{name}`", _type(extra["expects"]), default, _READS[reads], meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _type(expects: str) -> str:
    for begin, name in _TYPES.items():
        if expects.startswith(begin):
            return name
    if expects.startswith(("NAME: TABLES", "ID: TABLES")):
        return "`ID: TABLES`"
    if " or " in expects:
        # The values are in the meaning, too.
        return "one of " + ", ".join(
            f"`{each}`" for each in expects.replace(" or ", ", ").split(", ")
        )
    raise ValueError(f"no type for what {expects!r} expects")
