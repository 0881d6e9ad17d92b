"""gtid_mode is switched while a stream lags: the server no longer sends the other kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.servers import Server
from helpers.streams.source_runner import ids, insert
from helpers.writers.gtid_modes import switch, switchable_mode
from live.conftest import NewStream
from pyspark_mysqlbinlog.errors import ServerError


@pytest.fixture
def switchable(live_server: Server) -> Iterator[Server]:
    """Yield a server whose gtid_mode can be set while it runs; restore the mode at the end."""
    with switchable_mode(live_server):
        yield live_server


@pytest.mark.parametrize(
    ("before", "after", "advice"),
    [("OFF", "ON", "ON_PERMISSIVE"), ("ON", "OFF", "OFF_PERMISSIVE")],
)
def test_gtid_mode_switch_while_behind_is_rejected_until_permissive(
    *,
    switchable: Server,
    database: str,
    new_stream: NewStream,
    before: str,
    after: str,
    advice: str,
) -> None:
    table = f"{database}.t"
    switchable.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    switch(switchable, before)
    start = new_stream(switchable, table).initial()
    insert(switchable, table, 1)
    switch(switchable, after)
    insert(switchable, table, 2)
    with pytest.raises(ServerError) as refused:
        new_stream(switchable, table).next_batch(start)
    assert f"SET GLOBAL gtid_mode = {advice} until it has caught up" in refused.value.message
    # This advice works with the same checkpoint.
    switch(switchable, advice)
    stream = new_stream(switchable, table)
    got: list[int] = []
    while len(got) < 2:
        end = stream.next_batch(start)
        got += ids(stream.rows(start, end))
        start = end
    assert got == [1, 2]
