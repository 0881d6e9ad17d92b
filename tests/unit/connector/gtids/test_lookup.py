"""The first transaction after those of a set, where the numbers of a MariaDB domain decrease."""

from __future__ import annotations

from contextlib import nullcontext
from struct import pack

import pytest

from helpers.parity.decoding import make_event
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.connector.gtids.lookup import check_is_new
from pyspark_mysqlbinlog.errors import FailoverError
from pyspark_mysqlbinlog.protocol.events import EventType


@pytest.mark.parametrize(
    ("server_id", "number", "is_new"), [(2, 50, False), (2, 52, True), (1, 101, True), (3, 7, True)]
)
def test_mariadb_transaction_of_the_executed_set_cannot_be_the_next_one(
    server_id: int, number: int, is_new: bool
) -> None:
    executed = GtidSet.parse("0-1-100,0-2-51")
    body = pack("<QIB", number, 0, 0) + bytes(6)
    event = make_event(EventType.MARIADB_GTID_EVENT, body, 100, "b.000001")
    expected = nullcontext() if is_new else pytest.raises(FailoverError, match="0-2-50, which is")
    with expected:
        check_is_new(event._replace(server_id=server_id), executed)
