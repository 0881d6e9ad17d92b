"""The index of spans, compared with a linear search."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from helpers.logs.buffer_log import at, mark
from pyspark_mysqlbinlog.connector.tail.buffer_types import Span
from pyspark_mysqlbinlog.connector.tail.span_index import SpanIndex


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 5)), min_size=1, max_size=200),
    st.lists(st.integers(0, 40), max_size=10),
    st.integers(0, 3000),
    st.integers(0, 300),
)
def test_span_index_lookups_equal_a_linear_search(
    sizes: list[tuple[int, int]], releases: list[int], most_bytes: int, most_rows: int
) -> None:
    index, spans, here = SpanIndex(), [], 4
    for log_bytes, rows in sizes:
        here += log_bytes
        span = Span(mark(at(here - log_bytes)), mark(at(here)), log_bytes, None, log_bytes, rows)
        index.append(span)
        spans.append(span)
    for count in releases:
        index.release(min(count, len(index)))
        del spans[:count]
        assert list(index) == spans
        assert len(index) == len(spans)
        assert index.kept_bytes == sum(span.kept_bytes for span in spans)
        for n, span in enumerate(spans):
            assert index[n] is span
            assert index.index_after(span.end.position) == n + 1
            assert index.index_after(span.end.position._replace(pos=span.end.position.pos - 1)) == n
        for begin in range(0, len(spans) + 1, 7):
            expected_end = begin
            for end in range(begin, len(spans) + 1):
                part = spans[begin:end]
                if sum(s.log_bytes for s in part) <= most_bytes and (
                    sum(s.rows for s in part) <= most_rows
                ):
                    expected_end = end
            assert index.within(begin, most_bytes, most_rows) == expected_end
            assert index.within(begin, None, None) == len(spans)
