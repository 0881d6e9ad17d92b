"""Both implementations compared, on random and damaged logs: the same rows, the same errors.

Logs of hypothesis' own making, and captured ones; whole, or damaged where a checksum would not
tell.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import helpers.parity.require_kernel  # noqa: F401 - it says that the kernel is missing
from helpers.logs.chain import Chain
from helpers.logs.corrupt_logs import damaged, from_bytes
from helpers.logs.made_logs import logs, tables
from helpers.logs.recorded_logs import SCENARIOS, describe
from helpers.parity.decoding import CAPTURED
from helpers.parity.fuzzing import fuzz
from helpers.replay import captured_schemas

EXAMPLES = 150

# Hypothesis is slow with logs that are long, and finds nothing in them that shorter ones have not.
SHORT = tuple(name for name in SCENARIOS if name not in {"strings", "json_docs", "charsets"})

_OPTIONS = st.fixed_dictionaries(
    {"payload": st.sampled_from(("struct", "json", "variant"))},
    optional={
        "timeType": st.sampled_from(("interval", "micros")),
        "jsonType": st.just("variant"),
        "zeroDates": st.just("fail"),
        "tinyInt1IsBoolean": st.just("true"),
        "operations": st.sampled_from(("insert", "update,delete", "insert,truncate,ddl")),
        "onUnknownSchema": st.just("positional"),
        "schemaEvolutionMode": st.sampled_from(("rescue", "failOnNewColumns", "none")),
    },
)


def struct_options_only_for_structs(options: dict[str, str]) -> dict[str, str]:
    """Options that other payloads refuse are left out."""
    if options["payload"] == "struct":
        # Rows without names have no place in a struct.
        return {name: value for name, value in options.items() if name != "onUnknownSchema"}
    only = {"timeType", "jsonType", "zeroDates", "tinyInt1IsBoolean", "schemaEvolutionMode"}
    return {name: value for name, value in options.items() if name not in only}


OPTIONS = _OPTIONS.map(struct_options_only_for_structs)


def test_random_logs_give_the_same_rows_and_errors_in_both_implementations() -> None:
    @given(st.data(), tables(), st.booleans(), OPTIONS)
    def run(data: st.DataObject, made: Any, checksum: bool, options: dict[str, str]) -> None:
        schemas = [table.schema for table in made]
        if options["payload"] == "struct":
            options = options | {"tables": ",".join(f"d.{schema.table}" for schema in schemas)}
        events = data.draw(logs(made, checksum=checksum))
        raw = data.draw(damaged(events, checksum=checksum))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "b.000007").write_bytes(raw)
            Chain(Path(folder), schemas, options).assert_same()

    fuzz(run, EXAMPLES, share=0.4)


def test_captured_logs_give_the_same_rows_and_errors_in_both_implementations() -> None:
    described = {name: describe(name) for name in SHORT}
    schemas = {name: captured_schemas(each) for name, each in described.items()}
    files = {
        file: from_bytes((CAPTURED / file).read_bytes())
        for each in described.values()
        for file in each["files"]
    }

    @given(st.data(), st.sampled_from(SHORT), OPTIONS)
    def run(data: st.DataObject, name: str, options: dict[str, str]) -> None:
        if options["payload"] == "struct":
            names = (f"`{schema.database}`.`{schema.table}`" for schema in schemas[name])
            options = options | {"tables": ",".join(names)}
        file = data.draw(st.sampled_from(described[name]["files"]))
        events, checksum = files[file]
        raw = data.draw(damaged(events, checksum=checksum))
        with tempfile.TemporaryDirectory() as folder:
            for number, each in enumerate(described[name]["files"], 1):
                # Named as a server's, so that its events may be carried.
                target = Path(folder) / f"b.{number:06}"
                if each == file:
                    target.write_bytes(raw)
                else:
                    shutil.copyfile(CAPTURED / each, target)
            Chain(Path(folder), schemas[name], options).assert_same()

    fuzz(run, EXAMPLES, share=0.4)
