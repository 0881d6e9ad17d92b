"""Random result rows, whole and damaged, encoded by both implementations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from helpers.parity.fuzzing import fuzz
from helpers.parity.result_packets import COLUMNS, END, cells, damages, packet, plan_of, row
from helpers.parity.result_row_parity import RowParity
from helpers.values.value_bytes import column
from pyspark_mysqlbinlog.decoder.result_rows.encode import Encoded
from pyspark_mysqlbinlog.tables import ColumnSchema

# Eight, so that random rows often contain a JSON column.
_JSON = [column("json")] * 8
_ENDS = (b"", packet(END), packet(b"\xff\x15\x04#28000no"), b"\xff\xff\xff\x00\x00", b"\x09\x00")


def test_random_result_rows_give_the_same_result_in_both_implementations() -> None:
    @given(
        st.data(),
        st.lists(st.sampled_from([*COLUMNS, *_JSON]), min_size=1, max_size=20),
        st.booleans(),
    )
    def run(data: st.DataObject, columns: list[ColumnSchema], is_damaged: bool) -> None:
        excluded = data.draw(st.frozensets(st.integers(0, len(columns) - 1), max_size=2))
        parity = RowParity(plan_of(columns, excluded=excluded))
        payloads = [
            row(
                [
                    None
                    if at in excluded or data.draw(st.integers(0, 4)) == 0
                    else data.draw(cells(selected))
                    for at, selected in enumerate(parity.plan.columns)
                ]
            )
            for _ in range(data.draw(st.integers(1, 4)))
        ]
        if is_damaged:
            payloads = [data.draw(damages(payload)) for payload in payloads]
        packets = b"".join(map(packet, payloads)) + data.draw(st.sampled_from(_ENDS))
        found = parity.encode(packets)
        if not is_damaged:
            assert isinstance(found, Encoded)
            assert found.rows == len(payloads)
            assert not parity.by_hand
        parity.encode(packets[: data.draw(st.integers(0, len(packets)))])

    fuzz(run, 300, share=0.2)
