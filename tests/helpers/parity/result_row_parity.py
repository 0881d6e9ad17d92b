"""Result rows encoded as row images by both implementations, and compared."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import helpers.parity.require_kernel  # noqa: F401 (skips the tests if the kernel is missing)
from pyspark_mysqlbinlog.decoder.kernel.result_rows import KernelRowImages
from pyspark_mysqlbinlog.decoder.result_rows.columns import ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.encode import Encoded, RowImages
from pyspark_mysqlbinlog.decoder.result_rows.json_types import UntypedNumbers
from pyspark_mysqlbinlog.errors import MySQLBinlogError

__all__ = ["RowParity"]

T = TypeVar("T")
Refused: TypeAlias = MySQLBinlogError | UntypedNumbers


class _Noting(RowImages):
    """The kernel's Python fallback, which records the rows that it encodes."""

    def __init__(self, plan: ResultPlan) -> None:
        super().__init__(plan)
        self.by_hand: list[bytes] = []

    def encode_row(self, payload: bytes) -> bytes:
        self.by_hand.append(payload)
        return super().encode_row(payload)


class RowParity:
    """Both implementations of one plan.

    Attributes
    ----------
    by_hand : rows for which the kernel fell back to Python.
    """

    def __init__(self, plan: ResultPlan) -> None:
        self.plan = plan
        self._python = RowImages(plan)
        self._kernel = KernelRowImages(plan)
        noting = _Noting(plan)
        self._kernel._python = noting
        self.by_hand = noting.by_hand

    def encode(self, packets: bytes) -> Encoded | Refused:
        """Return the result of both for a buffer, or the error that both raise."""
        # An array has no spare bytes: a sanitizer detects every read past its end.
        view = memoryview(array("B", packets))
        return self._agreed(
            packets,
            _outcome(lambda: self._python.encode(view)),
            _outcome(lambda: self._kernel.encode(view)),
        )

    def encode_row(self, payload: bytes) -> bytes | Refused:
        """Return the same for one row."""
        return self._agreed(
            payload,
            _outcome(lambda: self._python.encode_row(payload)),
            _outcome(lambda: self._kernel.encode_row(payload)),
        )

    def _agreed(self, given: bytes, expected: T | Refused, found: T | Refused) -> T | Refused:
        columns = [column.schema for column in self.plan.columns]
        if isinstance(expected, Refused):
            # Compares everything that a user sees of the error.
            assert repr(found) == repr(expected), (columns, given.hex())
            assert str(found) == str(expected), (columns, given.hex())
            if isinstance(expected, UntypedNumbers):
                assert isinstance(found, UntypedNumbers)
                assert found.paths == expected.paths
        else:
            assert found == expected, (columns, given.hex())
        return found


def _outcome(run: Callable[[], T]) -> T | Refused:
    try:
        return run()
    except (MySQLBinlogError, UntypedNumbers) as error:
        return error
