"""Faults that `doctor` reports as a stop do stop a mirror, with the same message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from helpers.logs.live_log import new_database
from helpers.servers import LocalServer
from helpers.servers.available import own_kind
from helpers.tools.patients import OF_MIRROR, Patient, arguments_of
from helpers.tools.planted_faults import FAULTS, Fault
from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.errors import cause_of

CASES = [
    fault
    for fault in FAULTS
    if own_kind().name in fault.kinds
    and any(check in OF_MIRROR and status == "stop" for check, status in fault.found.items())
]


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with own_kind()(arguments_of(own_kind())) as server:
        yield server


@pytest.fixture
def patient(server: LocalServer, tmp_path: Path) -> Iterator[Patient]:
    with new_database(server, "ward") as database:
        patient = Patient(server, database, tmp_path)
        yield patient
        patient.recover()


def _reasons(spark: SparkSession, patient: Patient) -> list[str]:
    """Return why a new mirror's query ends, and why its tables are stopped."""
    checkpoint = str(patient.folder / "checkpoint")
    mirror = DeltaMirror(patient.target, checkpoint, patient.options)
    found = []
    try:
        mirror.start(spark, availableNow=True).awaitTermination()
    except PySparkException as error:
        cause = cause_of(error)
        found.append(str(error) if cause is None else cause.message)
    return [*mirror.stopped.values(), *found]


@pytest.mark.parametrize("fault", CASES, ids=lambda fault: fault.name)
def test_fault_that_doctor_reports_as_stop_stops_the_mirror(
    spark: SparkSession, patient: Patient, fault: Fault
) -> None:
    with fault.planted(patient):
        findings = {each.check: each for each in patient.findings()}
        (found,) = (each for each in findings.values() if each.status == "stop")
        try:
            reasons = _reasons(spark, patient)
        finally:
            fault.cure(patient, findings)
        assert reasons, found
        if found.check != "target storage":
            assert any(reason in found.found for reason in reasons), (reasons, found)


def test_mirror_without_a_fault_is_not_stopped(spark: SparkSession, patient: Patient) -> None:
    assert _reasons(spark, patient) == []
