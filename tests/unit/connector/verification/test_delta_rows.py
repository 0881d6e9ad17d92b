"""Delta tables that `verify` cannot compare."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ
from pyspark_mysqlbinlog.connector.verification.delta_rows import DeltaRows
from pyspark_mysqlbinlog.errors import MirrorError


@pytest.mark.parametrize(
    ("feature", "remedy"),
    [
        ("deletionVectors", r"delta\.enableDeletionVectors .* DROP FEATURE deletionVectors"),
        ("columnMapping", r"columnMapping.* DROP FEATURE"),
    ],
)
def test_delta_features_that_delta_rs_cannot_read_raise_an_error_with_remedy(
    tmp_path: Path, feature: str, remedy: str
) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], SEQ: [1]}))
    assert DeltaRows(str(tmp_path), {}, "shop.t").count() == 1
    # As Delta for Spark commits it when the property is set.
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": [feature], "writerFeatures": [feature]}
    commit = tmp_path / "_delta_log" / f"{1:020}.json"
    commit.write_text(json.dumps({"protocol": protocol | features}) + "\n")
    with pytest.raises(MirrorError, match=remedy):
        DeltaRows(str(tmp_path), {}, "shop.t")
