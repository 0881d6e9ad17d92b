"""Commit markers that Delta for Spark writes to commit metadata and a table property."""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.delta.store.metadata_markers import (
    COMMIT_MARKERS,
    MetadataMarkers,
    has_commit_id,
    user_metadata,
)

_LOG = "mysqlbinlog:uuid:0:mysql-bin"
_FIRST = {_LOG: 5, f"{_LOG}:event": 50, f"{_LOG}:file": 500, "mysqlbinlog:query:a": 1}
_SECOND = {_LOG: 6, f"{_LOG}:event": 60, f"{_LOG}:file": 600, "mysqlbinlog:query:a": 2}


def test_commit_markers_property_survives_round_trip() -> None:
    marks = MetadataMarkers.new(_LOG, _FIRST)
    assert MetadataMarkers.of({COMMIT_MARKERS: marks.text}) == marks
    assert MetadataMarkers.of({}) is None
    assert MetadataMarkers.of({COMMIT_MARKERS: ""}) is None


def test_latest_commit_of_own_application_gives_the_markers() -> None:
    marks, other = MetadataMarkers.new(_LOG, {}), MetadataMarkers.new(_LOG, {})
    assert marks.application != other.application
    commits = [
        None,
        "no JSON",
        "7",
        other.commit_metadata({_LOG: 9}),
        marks.commit_metadata(_SECOND),
    ]
    commits.append(marks.commit_metadata(_FIRST))
    assert marks.latest(commits, 6, {}) == _SECOND
    assert marks.latest(commits[:4], 5, _FIRST) == _FIRST


def test_commit_without_metadata_keeps_position_but_no_fingerprint() -> None:
    marks = MetadataMarkers.new(_LOG, _FIRST)
    found = marks.latest([None], 6, _FIRST)
    assert found == {_LOG: 6, "mysqlbinlog:query:a": 1}


def test_a_commit_is_found_by_its_id() -> None:
    marks = MetadataMarkers.new(_LOG, _FIRST)
    for own in (user_metadata("a"), marks.commit_metadata(_SECOND, "a")):
        assert has_commit_id(own, "a")
        assert not has_commit_id(own, "b")
    for other in (None, "no JSON", "7", marks.commit_metadata(_SECOND), user_metadata("b")):
        assert not has_commit_id(other, "a")
    assert marks.latest([user_metadata("b"), marks.commit_metadata(_SECOND, "a")], 6, {}) == _SECOND
