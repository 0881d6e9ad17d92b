"""Reads the row images of a whole SELECT in parts, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from pyspark_mysqlbinlog.decoder.result_rows.columns import Kind, ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.encode import IMAGES_BYTES, Encoded, RowImages
from pyspark_mysqlbinlog.decoder.result_rows.json_text import JsonPath
from pyspark_mysqlbinlog.decoder.result_rows.json_types import MOST_PATHS, UntypedNumbers
from pyspark_mysqlbinlog.errors import ServerError
from pyspark_mysqlbinlog.protocol.server.result_set import ResultSet
from pyspark_mysqlbinlog.protocol.server.session_settings import UNCACHED_SELECT

__all__ = ["SelectConnection", "RowImageEncoder", "read_images", "read_rows"]

# Without a default database, the server cannot search for an unknown function.
_NO_SUCH_FUNCTION = (1046, 1305)


class SelectConnection(Protocol):
    """A connection that runs SELECTs: `protocol.server.client.ReplicaClient`."""

    def prepared(self, sql: str) -> ResultSet:
        """See `ReplicaClient.prepared`."""
        ...


class RowImageEncoder(Protocol):
    """Interface of both implementations: `encode.RowImages` and the kernel's."""

    @property
    def plan(self) -> ResultPlan: ...

    def encode(self, view: memoryview) -> Encoded:
        """See `encode.RowImages.encode`."""
        ...

    def encode_row(self, payload: bytes) -> bytes:
        """See `encode.RowImages.encode_row`."""
        ...


def read_rows(
    client: SelectConnection,
    plan: ResultPlan,
    clauses: str = "",
    make: Callable[[ResultPlan], RowImageEncoder] = RowImages,
    *,
    once: bool = False,
) -> Iterator[bytes]:
    """Yield the images of a table's rows, in parts as `read_images` yields them.

    If documents have numbers whose types were not selected, the SELECT is repeated, and rows may be
    yielded twice. It must therefore run inside a transaction with one snapshot.

    Parameters
    ----------
    client : in a session for raw rows (`ReplicaClient.begin_raw_rows`).
    clauses : SQL after the table's name: FORCE INDEX, WHERE, ….
    make : makes the selected implementation.
    once : yield no row twice. The documents are read first, to find all of these numbers.

    Raises
    ------
    UnrepresentableValueError : the types of a document's numbers cannot be determined.
    UntypedNumbers : with `once`, documents changed between the reads: there was no snapshot.
    SchemaMismatchError, MalformedResultError, LostConnectionError, ServerError : as `read_images`.
    """
    if once:
        plan = _with_number_types(client, plan, clauses, make)
    has_yielded = False
    while True:
        result, plan = _select(client, plan, clauses)
        images = make(plan)
        try:
            for part in read_images(result, images):
                has_yielded = True
                yield part
        except UntypedNumbers as untyped:
            if once and has_yielded:
                raise
            plan = plan.selecting_number_types(_all_untyped(result, images, untyped))
        else:
            return


def _with_number_types(
    client: SelectConnection,
    plan: ResultPlan,
    clauses: str,
    make: Callable[[ResultPlan], RowImageEncoder],
) -> ResultPlan:
    """Return the plan that selects the types of all numbers that need it; reads the documents."""
    documents = replace(
        plan, columns=tuple(column for column in plan.columns if column.kind == Kind.JSON)
    )
    if not documents.columns:
        return plan
    while True:
        result, documents = _select(client, documents, clauses)
        images = make(documents)
        try:
            for _ in read_images(result, images):
                pass
        except UntypedNumbers as untyped:
            # A row's first document of this kind hides the numbers of the next columns.
            documents = documents.selecting_number_types(_all_untyped(result, images, untyped))
        else:
            break
    found = {column.schema.name: column for column in documents.columns}
    return replace(
        plan, columns=tuple(found.get(column.schema.name, column) for column in plan.columns)
    )


def _select(
    client: SelectConnection, plan: ResultPlan, clauses: str
) -> tuple[ResultSet, ResultPlan]:
    """Return the result of the plan's SELECT, and the plan that the server could run."""
    while True:
        try:
            # The names are quoted, and the rest is generated here.
            sql = f"{UNCACHED_SELECT} {plan.select_list} FROM {plan.source} {clauses}"
            return client.prepared(sql), plan
        except ServerError as error:
            if error.code not in _NO_SUCH_FUNCTION or not plan.selects_sizes:
                raise
            plan = plan.without_sizes()


def _all_untyped(
    result: ResultSet, images: RowImageEncoder, first: UntypedNumbers
) -> dict[str, set[JsonPath]]:
    """Read the result to its end; return the untyped numbers of all remaining rows."""
    paths = first.paths
    while (payload := result.next_row()) is not None:
        if any(len(each) > MOST_PATHS for each in paths.values()):
            continue
        try:
            images.encode_row(payload)
        except UntypedNumbers as untyped:
            for column, more in untyped.paths.items():
                paths.setdefault(column, set()).update(more)
    return paths


def read_images(result: ResultSet, images: RowImageEncoder) -> Iterator[bytes]:
    """Yield the images of a result's rows, about `IMAGES_BYTES` per part, or one larger row.

    Raises
    ------
    SchemaMismatchError : the result has other columns than the plan; nothing was yielded.
    MalformedResultError : a row cannot be read.
    UntypedNumbers : a document has them; the following rows are still in the result.
    LostConnectionError, ServerError : the errors of `ResultSet.next_row`.
    """
    images.plan.check(result.columns)
    parts: list[bytes] = []
    size = 0
    while True:
        encoded = images.encode(result.view())
        result.consume(encoded.consumed)
        if encoded.rows:
            parts.append(encoded.images)
            size += len(encoded.images)
        if size < IMAGES_BYTES and (encoded.ended or not result.fill()):
            # The end, an error, or a row larger than the buffer.
            payload = result.next_row()
            if payload is None:
                break
            parts.append(images.encode_row(payload))
            size += len(parts[-1])
        if size >= IMAGES_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)
