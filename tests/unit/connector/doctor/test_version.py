"""The finding of `doctor` on the server's version."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.connector.doctor.account_checks import version_finding


@pytest.mark.parametrize(
    ("text", "status", "found"),
    [
        ("5.1.73-log", "warning", "MySQL 5.1.73 is not supported"),
        ("5.5.62", "warning", "MySQL 5.5.62 is supported, but not tested"),
        ("5.6.24-log", "ok", "MySQL 5.6.24"),
        ("5.7.41-log", "ok", "MySQL 5.7.41"),
        ("8.0.36", "warning", "MySQL 8.0.36 is supported, but not tested"),
        ("8.4.2", "warning", "MySQL 8.4.2 is supported, but not tested"),
        ("9.6.0", "warning", "MySQL 9.6.0 is supported, but not tested"),
        ("9.7.4-2", "ok", "MySQL 9.7.4"),
        ("5.5.5-10.6.12-MariaDB", "warning", "MariaDB 10.6.12 is supported, but not tested"),
        ("5.5.5-10.11.6-MariaDB-0+deb12u1", "ok", "MariaDB 10.11.6"),
        ("11.8.9-MariaDB", "ok", "MariaDB 11.8.9"),
        ("proxy", "warning", "version proxy is not supported"),
    ],
)
def test_doctor_warns_about_untested_server_versions(text: str, status: str, found: str) -> None:
    finding = version_finding(text, is_mariadb="MariaDB" in text)
    assert (finding.status, finding.found) == (status, found)
    assert bool(finding.advice) == (status == "warning")
