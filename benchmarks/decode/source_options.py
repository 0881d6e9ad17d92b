"""How this project reads the benchmark's log: the options of the data source."""

from __future__ import annotations

import json

from benchmarks.workload.orders import DATABASE, TABLE
from benchmarks.workload.workload import Part, Workload
from helpers.servers import Server

__all__ = ["Options", "address", "file_options", "folder_options", "server_options"]

Options = dict[str, str]

_TABLES = f"{DATABASE}.{TABLE}"


def address(server: Server) -> str:
    """What pymysql.connect takes, as JSON: one word of a command."""
    given = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }
    return json.dumps(given)


def file_options(workload: Workload, part: Part, payload: str, *, piece: bool = False) -> Options:
    """One file of the log, or the beginning of it."""
    options = {"path": str(part.path), "tables": _TABLES, "payload": payload}
    if part is workload.single:
        # The CREATE TABLE is in the other file.
        options["schemaDdl"] = str(workload.schema)
    if piece:
        options["endingOffset"] = f"{part.file}:{part.piece_end}"
    return options


def folder_options(workload: Workload, payload: str) -> Options:
    """All files of the log."""
    return {"path": str(workload.folder), "tables": _TABLES, "payload": payload}


def server_options(server: Server, payload: str, start: str) -> Options:
    """The server, from a place on."""
    return {
        "host": server.host,
        "port": str(server.port),
        "user": server.user,
        "password": server.password,
        "tables": _TABLES,
        "payload": payload,
        "startingOffset": start,
    }
