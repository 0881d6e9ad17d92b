from typing import Any

from pyspark_mysqlbinlog.decoder.kernel.columns import ColumnSpec
from pyspark_mysqlbinlog.tables import ColumnSchema

class ColumnProgram:
    spec: ColumnSpec

def column_program(
    code: int, metadata: int, schema: ColumnSchema | None, excluded: bool = False
) -> ColumnProgram | None: ...
def masked_program(
    unmasked: ColumnProgram, kind: str, length: int, secret: bytes
) -> ColumnProgram: ...
def json_text(program: ColumnProgram, data: bytes, pos: int) -> tuple[bytes, int] | None: ...
def read(program: ColumnProgram, data: bytes, pos: int) -> tuple[Any, int] | None: ...
def skip(program: ColumnProgram, data: bytes, pos: int) -> int | None: ...
