"""The compiled decode loop compared with the Python implementation: equal rows and errors."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import helpers.parity.require_kernel  # noqa: F401 (skips this module if there is no kernel)
from helpers.logs.corrupt_logs import RawEvent
from helpers.logs.made_logs import MadeTable, logs, tables
from helpers.logs.recorded_logs import SCENARIOS, load
from helpers.logs.row_logs import INT, VALUES_OF, WRITE, EventLog, RowLog
from helpers.parity.decode_parity import (
    KINDS,
    PAYLOADS,
    Nothing,
    Parity,
    Payloads,
    assert_same,
    blocks_of_one,
)
from helpers.replay import captured_schemas
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter
from pyspark_mysqlbinlog.decoder.payloads.struct_payload import Unplaced
from pyspark_mysqlbinlog.decoder.schemas.struct_types import StructOptions
from pyspark_mysqlbinlog.protocol.blocks import pack_events
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

TESTS = Path(__file__).parents[3]

# --- logs that a server wrote


@pytest.mark.sample(25)
@pytest.mark.parametrize("batch_rows", [16_384, 3])
@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_kernel_decodes_captured_logs_like_python_without_fallback(
    scenario: str, payload: str, batch_rows: int, by_hand: list[Event]
) -> None:
    described, events = load(scenario)
    parity = Parity(captured_schemas(described), PAYLOADS[payload], batch_rows=batch_rows)
    expected = parity.python(events)
    found = parity.assert_same(events)
    # The Python decoder gets only an event that is unreadable in both implementations.
    assert len(by_hand) == (found.error is not None)
    assert found.sizes == expected.sizes
    assert sum(found.sizes) > 0 or found.error is not None
    assert_same(parity.schema, expected, parity.kernel(blocks_of_one(events)))


def test_names_of_missing_columns_count_toward_batch_bytes() -> None:
    """Each row of a wide table with minimal images lists many more missing columns than values."""
    columns = [replace(INT, name=f"column_\u00e9_{at}") for at in range(200)]
    log = RowLog()
    log.table_map([(column, 0) for column in columns])
    images = (b"\xfe" + number.to_bytes(4, "little") for number in range(500))
    log.rows(WRITE, len(columns), *images, present=b"\x01")
    parity = Parity([TableSchema("d", "t", tuple(columns))], Payloads("json"), batch_bytes=100_000)
    found = parity.assert_same(log.events)
    assert found.sizes == parity.python(log.events).sizes
    assert max(batch.nbytes for batch in found.batches) < 400_000


@pytest.mark.parametrize("batch_bytes", [1, 2_000, 20_000])
@pytest.mark.parametrize("kind", KINDS)
def test_kernel_and_python_split_batches_at_the_same_bytes(kind: str, batch_bytes: int) -> None:
    for scenario in ("gtid_no_checksum", "temporals", "row_images", "charsets"):
        described, events = load(scenario)
        parity = Parity(captured_schemas(described), Payloads(kind), batch_bytes=batch_bytes)
        assert parity.assert_same(events).sizes == parity.python(events).sizes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", ["numbers", "strings", "row_images", "transactions"])
def test_kernel_decode_with_excluded_columns_matches_python(scenario: str, kind: str) -> None:
    described, events = load(scenario)
    schemas = captured_schemas(described)
    for stride, first in ((2, 0), (2, 1), (3, 1)):
        names = [
            f"`{schema.database}`.`{schema.table}`.`{column.name}`"
            for schema in schemas
            for column in schema.columns[first::stride]
            if len(schema.columns) > 2
        ]
        columns = ColumnFilter.parse(",".join(names) or None)
        Parity(schemas, Payloads(kind, columns=columns)).assert_same(events)


@pytest.mark.parametrize("operations", ["insert", "update", "delete", "truncate"])
def test_kernel_decode_of_a_single_operation_matches_python(operations: str) -> None:
    described, events = load("row_images")
    for kind in KINDS:
        parity = Parity(
            captured_schemas(described), Payloads(kind), operations=frozenset({operations})
        )
        parity.assert_same(events)


# Some documents in `virtual_columns` are invalid, and only a schema shows which columns have them.
@pytest.mark.parametrize("kind", ["json", "variant"])
@pytest.mark.parametrize("scenario", sorted({*SCENARIOS} - {"virtual_columns"}))
def test_kernel_decode_of_positional_columns_matches_python(
    scenario: str, kind: str, by_hand: list[Event]
) -> None:
    described, events = load(scenario)
    schemas = captured_schemas(described)
    Parity(schemas, Payloads(kind), lookup=Nothing(), positional=True).assert_same(events)
    assert not by_hand
    Parity(schemas, Payloads(kind), lookup=Nothing()).assert_same(events)
    assert len(by_hand) == 1


@pytest.mark.sample(5)
@pytest.mark.parametrize("unplaced", ["rescue", "stop", "ignore"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_kernel_decode_into_a_struct_of_other_columns_matches_python(
    scenario: str, unplaced: Unplaced
) -> None:
    """Some columns are missing in the struct, some differ in type, some are missing in the log."""
    described, events = load(scenario)
    schemas = captured_schemas(described)
    random = Random(scenario)
    new = ColumnSchema("new", "int")
    for _ in range(5):
        promised = []
        for schema in schemas:
            columns = [column for column in schema.columns if random.random() < 0.8]
            random.shuffle(columns)
            changed = [
                replace(column, type="varchar", length=9, charset="utf8mb4", unsigned=False)
                if random.random() < 0.2
                else replace(column, name=column.name.upper())
                for column in columns
            ]
            promised.append(replace(schema, columns=(new, *changed)))
        Parity(schemas, Payloads("struct", unplaced=unplaced, promised=promised)).assert_same(
            events
        )


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_kernel_decode_of_damaged_logs_matches_python(scenario: str, kind: str) -> None:
    """Bits are flipped, and bytes removed or added, in event bodies; event lengths are correct."""
    described, events = load(scenario)
    schemas = captured_schemas(described)
    random = Random(f"{scenario}{kind}")
    refused = 0
    for _ in range(25):
        damaged = list(events)
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(damaged))
            event = damaged[at]
            body = bytearray(event.body)
            if random.random() < 0.3:
                del body[random.randint(0, len(body)) :]
            elif random.random() < 0.2:
                body += random.randbytes(random.randint(1, 3))
            elif body:
                body[random.randrange(len(body))] ^= 1 << random.randrange(8)
            kept = event.end - event.start - len(event.body)
            damaged[at] = event._replace(body=bytes(body), end=event.start + kept + len(body))
        parity = Parity(schemas, Payloads(kind), batch_rows=random.choice((1, 7, 16_384)))
        expected, found = parity.python(damaged), parity.kernel(blocks_of_one(damaged))
        assert_same(parity.schema, expected, found)
        refused += found.error is not None
    assert refused > 4


# --- random tables


def events_of(made: list[RawEvent]) -> list[Event]:
    """Return the events without FORMAT_DESCRIPTION, which the filter never passes to a decoder."""
    log = EventLog()
    for event in made:
        if event.kind != EventType.FORMAT_DESCRIPTION_EVENT:
            log.add(event.kind, event.body)
    return log.events


@pytest.mark.sample(3)
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("payload", PAYLOADS)
def test_kernel_decode_of_random_tables_matches_python(payload: str, part: int) -> None:
    """The seeds are fixed; tests/fuzz generates other logs."""

    @seed(f"{payload} {part}")
    @settings(max_examples=15, database=None, suppress_health_check=list(HealthCheck))
    @given(
        st.data(),
        tables(),
        st.fixed_dictionaries(
            {
                "batch_rows": st.sampled_from((1, 2, 5, 50, 16_384)),
                "batch_bytes": st.sampled_from((1, 500, 8 << 20)),
                "epoch": st.integers(0, 25),
            }
        ),
    )
    def run(data: st.DataObject, made: list[MadeTable], choices: dict[str, Any]) -> None:
        events = events_of(data.draw(logs(made, checksum=True)))
        parity = Parity([table.schema for table in made], PAYLOADS[payload], **choices)
        expected, found = parity.python(events), parity.kernel(pack_events(events))
        assert_same(parity.schema, expected, found)
        if found.error is None and payload != "struct-interval":
            assert found.sizes == expected.sizes

    run()


# --- struct columns of other types than in the binlog

TARGETS = [
    ColumnSchema("c", "smallint"),
    ColumnSchema("c", "int"),
    ColumnSchema("c", "bigint"),
    ColumnSchema("c", "bigint", unsigned=True),
    ColumnSchema("c", "decimal", 38, 0),
    ColumnSchema("c", "decimal", 38, 9),
    ColumnSchema("c", "decimal", 30, 5),
    ColumnSchema("c", "decimal", 12, 2),
    ColumnSchema("c", "float"),
    ColumnSchema("c", "double"),
    ColumnSchema("c", "varchar", 9, charset="utf8mb4"),
    ColumnSchema("c", "blob"),
    ColumnSchema("c", "bit", 1),
    ColumnSchema("c", "time"),
    ColumnSchema("c", "json"),
    ColumnSchema("c", "point"),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize("target", TARGETS, ids=lambda column: f"{column.type}-{column.length}")
@pytest.mark.parametrize("time_type", ["string", "micros", "interval"])
def test_kernel_decode_into_other_struct_types_matches_python(
    target: ColumnSchema, time_type: str, by_hand: list[Event]
) -> None:
    options = StructOptions(time_type=time_type)
    placed = 0
    for (column, old), raws in VALUES_OF.items():
        log = RowLog()
        log.table_map([(column, old)])
        log.rows(WRITE, 1, *(b"\x00" + raw for raw in (*raws, *reversed(raws))), b"\x01")
        schema = TableSchema("d", "t", (column,))
        promised = [replace(schema, columns=(target,))]
        modes: tuple[Unplaced, ...] = ("stop", "rescue", "ignore")
        for unplaced in modes:
            payload = Payloads("struct", options, unplaced=unplaced, promised=promised)
            found = Parity([schema], payload).assert_same(log.events)
        placed += found.error is None
    # Values that fit the struct's type are decoded without the Python decoder.
    assert placed > 0
    assert len(by_hand) <= 2 * (len(VALUES_OF) - placed)


# --- memory


@pytest.mark.sample(1)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")
@pytest.mark.parametrize("payload", ["json", "struct-micros", "variant"])
def test_kernel_decode_releases_its_memory(payload: str) -> None:
    """Decoding small batches many times with new plans and loops uses less than 4 MiB more."""
    program = [sys.executable, "-m", "helpers.parity.decode_memory", payload]
    # Add the path of the helpers; the package is imported as in this process.
    paths = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    # By default, AddressSanitizer keeps freed memory in a quarantine.
    asan = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=0"
    found = subprocess.run(
        program,
        env=os.environ | {"PYTHONPATH": paths, "ASAN_OPTIONS": asan},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(found.stdout) < 4 << 20
