"""`doctor` finds each planted fault alone, its output corrects it, and a query fails alike.

The servers are MySQL 5.6, 5.7 and 9, and MariaDB.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.logs.live_log import new_database
from helpers.needed_servers import need
from helpers.servers import LocalServer
from helpers.tools.patients import KINDS, OF_MIRROR, Patient, arguments_of
from helpers.tools.planted_faults import FAULTS, Fault

# Findings on a healthy server: these servers have no certificate.
HEALTHY = {"mysql56": {"encryption"}, "mariadb": {"encryption"}}
CASES = [(kind, fault) for kind in KINDS for fault in FAULTS if kind.name in fault.kinds]


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    kind: type[LocalServer] = request.param
    need(kind)
    with kind(arguments_of(kind)) as server:
        yield server


@pytest.fixture
def patient(server: LocalServer, tmp_path: Path) -> Iterator[Patient]:
    with new_database(server, "clinic") as database:
        patient = Patient(server, database, tmp_path)
        yield patient
        patient.recover()


@pytest.mark.parametrize("server", KINDS, indirect=True, ids=lambda kind: kind.name)
def test_doctor_finds_no_fault_on_a_healthy_server(patient: Patient) -> None:
    assert {each.check for each in patient.findings()} == HEALTHY.get(patient.server.name, set())
    assert patient.error_of_query() is None
    assert not patient.lake.exists()


@pytest.mark.sample(48)
@pytest.mark.parametrize(
    ("server", "fault"),
    CASES,
    indirect=["server"],
    ids=[f"{kind.name}-{fault.name}" for kind, fault in CASES],
)
def test_doctor_finds_each_planted_fault_until_it_is_corrected(
    patient: Patient, fault: Fault
) -> None:
    healthy = HEALTHY.get(patient.server.name, set())
    with fault.planted(patient):
        found = {each.check: each for each in patient.findings() if each.check not in healthy}
        assert {check: each.status for check, each in found.items()} == fault.found, found
        error = patient.error_of_query()
        stops = [
            each.found
            for each in found.values()
            if each.status == "stop" and each.check not in OF_MIRROR
        ]
        if stops:
            assert error is not None
            assert stops[0].startswith(error)
        else:
            assert error is None
        fault.cure(patient, found)
        left = {each.check: each for each in patient.findings() if each.check not in healthy}
        if patient.server.is_mariadb and left.keys() == {"foreign keys"} != found.keys():
            # The foreign keys become visible with their table.
            patient.paste([*left.values()])
            left = {each.check: each for each in patient.findings() if each.check not in healthy}
        assert left == {}


@pytest.mark.parametrize("server", KINDS[:1], indirect=True, ids=lambda kind: kind.name)
@pytest.mark.parametrize(("seconds", "words"), [(-90, "90 s fast"), (90, "90 s slow")])
def test_doctor_reports_the_clock_difference(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, seconds: int, words: str
) -> None:
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + seconds)
    (found,) = (each for each in patient.findings() if each.check == "clock")
    assert words in found.found or words.replace("90", "89") in found.found
