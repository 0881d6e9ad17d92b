"""Changes with random row images, metadata and compression: both decoders equal SELECT.

Each transaction has its own settings: `binlog_row_image`, partial JSON updates (MySQL 8.0 and
later) and compression. Keyed and keyless tables have columns of random types; where the server has
them, also JSON and VECTOR. `Replay` checks the columns that an image lacks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from helpers.logs.live_log import log_rows, new_database, schemas_of, selected
from helpers.replay import Replay
from helpers.schemas.random_tables import RandomTable, Value
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.writers.global_settings import globally
from pyspark_mysqlbinlog.decoder.kernel.implementation import using

ROWS = 300
STRINGS = ("", "a", "é漢😀", 'qu"ote\\', "x" * 300)


def random_json(random: Random, depth: int = 3) -> Any:
    choices = ["null", "bool", "int", "float", "string", *(["list", "map"] * (depth > 0))]
    match random.choice(choices):
        case "null":
            return None
        case "bool":
            return random.random() < 0.5
        case "int":
            bits = random.choice((7, 15, 16, 31, 32, 62))
            return random.randint(-(2**bits), 2**bits)
        case "float":
            return random.randint(-99999, 99999) / 8
        case "string":
            return random.choice(STRINGS)
        case "list":
            return [random_json(random, depth - 1) for _ in range(random.randint(0, 5))]
        case _:
            names = random.sample("abcdefé", random.randint(0, 6))
            return {name: random_json(random, depth - 1) for name in names}


def json_literal(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def random_document(random: Random) -> str:
    names = random.sample("abcdefé", random.randint(0, 6))
    return json_literal({name: random_json(random) for name in names})


def random_vector(random: Random) -> str:
    floats = [random.randint(-999, 999) / 8 for _ in range(3)]
    return f"STRING_TO_VECTOR('{json.dumps(floats)}')"


def json_update(random: Random) -> str:
    """Return an expression for which the server may log a part of the document."""
    path = random.choice(("$.a", "$.b", "$.c[1]", "$.d.a", "$.e[0].b", '$."é"'))
    new = f"CAST({json_literal(random_json(random, 1))} AS JSON)"
    return random.choice(
        (
            f"JSON_SET(j, '{path}', {new})",
            f"JSON_REPLACE(j, '{path}', {new})",
            f"JSON_REMOVE(j, '{path}')",
            f"JSON_SET(JSON_REMOVE(j, '$.a'), '{path}', {new}, '$.f', 1)",
        )
    )


def major_of(server: Server) -> int:
    """Return the first number of MySQL's version; 0 for MariaDB."""
    version = server.version()
    return 0 if "MariaDB" in version else int(version.partition(".")[0])


class Transactions:
    """Random transactions on a keyed and on a keyless table.

    is_described : whether the binlog's metadata is the only schema, which does not contain whether
        a column is virtual. Before images of updates are then without JSON, and the result of a
        partial update is not known.
    """

    def __init__(self, random: Random, server: Server, *, is_described: bool) -> None:
        self._random = random
        self._is_newer = major_of(server) >= 8
        self._has_partial_updates = self._is_newer and not is_described
        # The kinds of events that must occur, as SHOW BINLOG EVENTS names them.
        self.logged_as = {"Transaction_payload"} if self._is_newer else set()
        if self._has_partial_updates:
            self.logged_as.add("Update_rows_partial")
        more: list[tuple[str, str, Value]] = []
        if major_of(server) >= 8 or server.version().startswith("5.7."):
            more.append(("j", "JSON", random_document))
        if major_of(server) >= 9:
            more.append(("vec", "VECTOR(3)", random_vector))
        self._has_json = bool(more)
        columns = RandomTable.make(random, columns=12).columns
        self.table = RandomTable([*columns, *more])

    def statements(self) -> Iterator[str]:
        """Yield the statements of one session."""
        random = self._random
        create, *changes = self.table.statements(random, ROWS)
        yield create
        yield create.replace("t (id INT PRIMARY KEY AUTO_INCREMENT", "k (id INT", 1)
        inserts = [sql for sql in changes if sql.startswith("INSERT")]
        others = changes[len(inserts) :]
        random.shuffle(others)
        for sql in inserts:
            yield from self._settings()
            yield sql
        yield from self._settings()
        yield "INSERT INTO k SELECT * FROM t"
        if self._has_json:
            ids = random.choices(range(1, ROWS + 1), k=ROWS // 2)
            others += [
                f"UPDATE t SET j = {json_update(random)} WHERE id IN ({row}, {row + 1000000})"
                for row in ids
            ]
            random.shuffle(others)
        while others:
            yield from self._settings()
            yield "BEGIN"
            for _ in range(random.choice((1, 1, 2, 5, 40))):
                if others:
                    sql = others.pop()
                    yield sql
                    yield sql.replace("UPDATE t", "UPDATE k").replace("FROM t", "FROM k")
            yield random.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))

    def _settings(self) -> Iterator[str]:
        random = self._random
        image = random.choice(("full", "full", "minimal", "noblob"))
        yield f"SET SESSION binlog_row_image = {image}"
        if self._has_partial_updates:
            # A partial update needs the document before it.
            partial = "PARTIAL_JSON" if image == "full" and random.random() < 0.7 else ""
            yield f"SET SESSION binlog_row_value_options = '{partial}'"
        if self._is_newer:
            yield f"SET SESSION binlog_transaction_compression = {random.choice(('ON', 'OFF'))}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", dict.fromkeys([*every_server(), "mysql9"]))
def test_random_images_replayed_by_both_decoders_equal_select(
    request: pytest.FixtureRequest, name: str, seed: int
) -> None:
    server: Server = request.getfixturevalue(name)
    random = Random(f"{os.environ['MYSQLBINLOG_FUZZ_SEED']} {server.name} {seed}")
    metadata = random.choice(("FULL", "MINIMAL"))
    # MySQL 8.0 and later describe all that a row needs.
    is_described = major_of(server) >= 8 and metadata == "FULL" and random.random() < 0.5
    transactions = Transactions(random, server, is_described=is_described)
    with (
        globally(server, {"binlog_row_metadata": metadata}),
        new_database(server, f"images_{seed}") as database,
    ):
        start = server.position()
        with server.connect(database=database) as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
            for statement in transactions.statements():
                cursor.execute(statement)
        if transactions.logged_as:
            # Otherwise the settings had no effect, and the test would show less than it says.
            file, pos = start
            logged = server.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {pos}")
            assert transactions.logged_as <= {row[2] for row in logged}
        schemas = schemas_of(server, database)
        known = [] if is_described else schemas
        with using("c"):
            rows = log_rows(server, start, database, known)
        with using("python"):
            assert log_rows(server, start, database, known) == rows
        replay = Replay(schemas)
        replay.apply(rows)
        for schema, shown in zip(schemas, selected(server, *schemas), strict=True):
            replay.assert_equals(database, schema.table, shown)
