"""Faults to plant in a healthy server and lake, which `doctor` must find."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import pyarrow as pa
from deltalake import write_deltalake

from helpers.tools.patients import ACCOUNT, KINDS, NEWER, PASSWORD, Patient
from helpers.waiting import wait_until
from helpers.writers.replication import replicate
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.doctor.finding import Finding
from pyspark_mysqlbinlog.connector.log.dump import Dump
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["FAULTS", "Fault"]

_56, _57, _9, _MARIADB = (kind.name for kind in KINDS)
_MYSQL = (_56, *NEWER)


Cure = Callable[[Patient, Mapping[str, Finding]], None]


def _paste(patient: Patient, findings: Mapping[str, Finding]) -> None:
    patient.paste([*findings.values()])


def _add_key_with_partitioning(patient: Patient, findings: Mapping[str, Finding]) -> None:
    found = findings["primary keys"]
    assert not found.statements
    assert f"{patient.database}.k: the key of a partitioned table" in found.advice
    patient.execute(
        "ALTER TABLE {database}.k ADD COLUMN id INT NOT NULL AUTO_INCREMENT,"
        " ADD PRIMARY KEY (id, v)"
    )


def _take_option(patient: Patient, findings: Mapping[str, Finding]) -> None:
    """Set the option that the advice shows."""
    for each in findings.values():
        for name, value in re.findall(r"--option (\w+)=([\w-]+)", each.advice):
            patient.options[name] = value


def _restart(patient: Patient, findings: Mapping[str, Finding]) -> None:
    """Restart the server without the arguments that the advice names."""
    assert all("restart" in each.advice for each in findings.values())
    patient.restart()


@dataclass(frozen=True)
class Fault:
    """A fault, how it is planted, and how it is corrected.

    Attributes
    ----------
    found : all findings of the doctor that are expected: check -> status.
    kinds : of servers that can have it.
    sql : statements that plant it.
    options : of the query, which plant it.
    plant : plants it until the end of the block, after `sql`.
    cure : corrects it; by default the statements that the doctor prints are executed.
    """

    name: str
    found: Mapping[str, str]
    kinds: tuple[str, ...] = (*_MYSQL, _MARIADB)
    sql: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    plant: Callable[[Patient], AbstractContextManager[object] | None] = lambda _: nullcontext()
    cure: Cure = _paste

    @contextmanager
    def planted(self, patient: Patient) -> Iterator[None]:
        patient.execute(*(each.replace("{account}", ACCOUNT) for each in self.sql))
        patient.options |= {
            name: value.replace("{database}", patient.database)
            for name, value in self.options.items()
        }
        with self.plant(patient) or nullcontext():
            yield


def _restarted(*arguments: str) -> Callable[[Patient], None]:
    return lambda patient: patient.restart(*arguments)


def _without_binlog(patient: Patient) -> None:
    patient.restart("--skip-log-bin", *(["--gtid-mode=OFF"] if patient.server.name == _56 else []))


@contextmanager
def _replica_with_id(patient: Patient) -> Iterator[None]:
    """Connect another replica, with the only server_id that the query may use."""
    patient.options["serverId"] = "77"
    settings = patient.server.settings(server_ids=(77, 77), ssl_mode="DISABLED")
    with ReplicaClient.connect(settings) as client:
        Dump(client, Position.of(*patient.server.position()), None, blocking=True)
        yield


@contextmanager
def _session_in_statement_format(patient: Patient) -> Iterator[None]:
    with patient.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute("SELECT CONNECTION_ID()")
        patient.folder.joinpath("session").write_text(str(cursor.fetchall()[0][0]))
        yield


def _end_session(patient: Patient, _: Mapping[str, Finding]) -> None:
    number = int(patient.folder.joinpath("session").read_text())
    patient.execute(f"KILL {number}")
    listed = "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_ID = "
    wait_until(lambda: not patient.server.execute(f"{listed}{number}")[0][0], "the session ends")


def _of_another_server(patient: Patient) -> AbstractContextManager[object]:
    """Let the server apply another server's changes without logging them."""
    patient.restart("--skip-log-slave-updates", "--gtid-mode=OFF", "--skip-slave-start")

    @contextmanager
    def replicating() -> Iterator[None]:
        with type(patient.server)(["--server-id=8"]) as source:
            replicate(patient.server, source, with_gtids=False)
            yield
            patient.execute("STOP SLAVE", "RESET SLAVE ALL")

    return replicating()


def _log_updates(patient: Patient, findings: Mapping[str, Finding]) -> None:
    assert "log_slave_updates" in findings["binlog contents"].advice
    patient.restart("--skip-slave-start")


def _foreign_table(patient: Patient) -> None:
    rows = pa.table({"id": pa.array([1])})
    write_deltalake(str(patient.lake / patient.database / "t"), rows)


def _other_files(patient: Patient) -> None:
    folder = patient.lake / patient.database / "t"
    folder.mkdir(parents=True)
    folder.joinpath("report.csv").write_text("1")


def _file_in_path(patient: Patient) -> None:
    patient.lake.write_text("no folder")


def _remove_lake(patient: Patient, findings: Mapping[str, Finding]) -> None:
    assert all(each.advice for each in findings.values())
    if patient.lake.is_dir():
        shutil.rmtree(patient.lake)
    else:
        patient.lake.unlink()


def _one_path(patient: Patient) -> None:
    patient.options["tables"] = f"{patient.database}.*,{patient.database}_2.t"
    patient.execute(
        "DROP DATABASE IF EXISTS {database}_2",
        "CREATE DATABASE {database}_2",
        "CREATE TABLE {database}_2.t (id INT PRIMARY KEY)",
        f"GRANT SELECT, REFERENCES ON {{database}}_2.* TO {ACCOUNT}",
    )
    patient.target = f"{patient.lake}/{{table}}"


def _two_paths(patient: Patient, findings: Mapping[str, Finding]) -> None:
    assert "{database}" in findings["target paths"].advice
    patient.target = f"{patient.lake}/{{database}}/{{table}}"


def _fill_time_zones(patient: Patient, _: Mapping[str, Finding]) -> None:
    patient.execute(
        "INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (1, 'N')",
        "INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('UTC', 1)",
        "INSERT INTO mysql.time_zone_transition_type VALUES (1, 0, 0, 0, 'UTC')",
        "FLUSH TABLES",
    )


def _correct_password(patient: Patient, findings: Mapping[str, Finding]) -> None:
    assert "password" in findings["connection"].advice
    patient.options["password"] = PASSWORD


def _create_table(patient: Patient, findings: Mapping[str, Finding]) -> None:
    assert "spelling" in findings["tables"].found
    patient.options["tables"] = f"{patient.database}.t"


# Revokes all privileges: MariaDB shows tables to an account with only REFERENCES.
_REVOKE_SELECT = "REVOKE ALL PRIVILEGES ON {database}.* FROM {account}"
_GIVE_LOCKS = "GRANT LOCK TABLES ON {database}.* TO {account}"
_HOSTILE = "`[red]a\x1b]0;b'``;\u202e`"

FAULTS = [
    # The server's settings.
    Fault("no binlog", {"binlog": "stop"}, plant=_without_binlog, cure=_restart),
    Fault(
        "statement format",
        {"binlog format": "stop"},
        sql=("SET GLOBAL binlog_format = 'STATEMENT'",),
    ),
    Fault(
        "minimal images", {"row image": "stop"}, sql=("SET GLOBAL binlog_row_image = 'MINIMAL'",)
    ),
    Fault(
        "partial JSON",
        {"json images": "warning"},
        (_9,),
        sql=("SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'",),
    ),
    Fault(
        "minimal metadata",
        {"row metadata": "warning"},
        (_9, _MARIADB),
        sql=("SET GLOBAL binlog_row_metadata = 'MINIMAL'",),
    ),
    Fault(
        "no checksums",
        {"binlog checksum": "warning"},
        sql=("SET GLOBAL binlog_checksum = 'NONE'",),
    ),
    Fault(
        "GTIDs off",
        {"gtid mode": "warning"},
        NEWER,
        sql=(
            "SET GLOBAL gtid_mode = 'ON_PERMISSIVE'",
            "SET GLOBAL gtid_mode = 'OFF_PERMISSIVE'",
            "SET GLOBAL gtid_mode = 'OFF'",
            "SET GLOBAL enforce_gtid_consistency = 'OFF'",
        ),
    ),
    Fault(
        "GTIDs permissive",
        {"gtid mode": "warning"},
        NEWER,
        sql=("SET GLOBAL gtid_mode = 'ON_PERMISSIVE'",),
    ),
    Fault(
        "GTIDs off until a restart",
        {"gtid mode": "warning"},
        (_56,),
        plant=_restarted("--gtid-mode=OFF"),
        cure=_restart,
    ),
    Fault(
        "a retention of a day",
        {"retention": "warning"},
        (_56, _57, _MARIADB),
        sql=("SET GLOBAL expire_logs_days = 1",),
    ),
    Fault(
        "a retention of an hour",
        {"retention": "warning"},
        (_9,),
        sql=("SET GLOBAL binlog_expire_logs_seconds = 3600",),
    ),
    Fault("no server_id", {"replication": "stop"}, NEWER, sql=("SET GLOBAL server_id = 0",)),
    Fault(
        "no time zones",
        {"time zone tables": "warning"},
        options={"snapshotWhere": "{\"{database}.t\": \"CONVERT_TZ(NOW(), 'UTC', '+00:00') > 0\"}"},
        cure=_fill_time_zones,
    ),
    Fault(
        "a filter of the binlog",
        {"binlog contents": "stop"},
        plant=lambda patient: patient.restart(f"--binlog-ignore-db={patient.database}"),
        cure=_restart,
    ),
    Fault(
        "a replica that logs nothing",
        {"binlog contents": "stop", "gtid mode": "warning"},
        # Another 5.7 needs half a minute to start.
        (_56,),
        plant=_of_another_server,
        cure=_log_updates,
    ),
    # The account and its connections.
    Fault(
        "another replica with the id",
        {"replica ids": "warning"},
        plant=_replica_with_id,
        cure=_take_option,
    ),
    Fault(
        "a session in statement format",
        {"statement sessions": "warning"},
        NEWER,
        plant=_session_in_statement_format,
        cure=_end_session,
    ),
    Fault(
        "no sight of sessions",
        {"statement sessions": "warning"},
        NEWER,
        sql=(
            "REVOKE SELECT ON performance_schema.threads FROM {account}",
            "REVOKE SELECT ON performance_schema.variables_by_thread FROM {account}",
        ),
    ),
    Fault(
        "no sight of replicas",
        {"replica ids": "warning"},
        (_MARIADB,),
        sql=("REVOKE REPLICATION MASTER ADMIN ON *.* FROM {account}",),
    ),
    Fault(
        "no REPLICATION SLAVE",
        {"replica ids": "warning", "replication": "stop"},
        _MYSQL,
        sql=("REVOKE REPLICATION SLAVE ON *.* FROM {account}",),
    ),
    Fault(
        "no REPLICATION SLAVE on MariaDB",
        {"replication": "stop"},
        (_MARIADB,),
        sql=("REVOKE REPLICATION SLAVE ON *.* FROM {account}",),
    ),
    Fault(
        "no REPLICATION CLIENT",
        {"binlog contents": "warning", "binlog access": "stop", "retention": "warning"},
        sql=("REVOKE REPLICATION CLIENT ON *.* FROM {account}",),
    ),
    Fault(
        "no PROCESS",
        {"snapshot reads": "stop"},
        (_56, _9, _MARIADB),
        sql=("REVOKE PROCESS ON *.* FROM {account}",),
    ),
    Fault(
        "no sight of foreign keys",
        {"foreign keys": "warning"},
        (_MARIADB,),
        sql=("REVOKE REFERENCES ON {database}.* FROM {account}",),
    ),
    Fault("no SELECT", {"tables": "stop"}, sql=(_REVOKE_SELECT,)),
    Fault(
        "no SELECT of a named table",
        {"tables": "stop"},
        sql=(_REVOKE_SELECT,),
        options={"tables": "{database}.t"},
    ),
    Fault(
        "SELECT of one column",
        {"tables": "stop"},
        sql=(_REVOKE_SELECT, "GRANT SELECT (id) ON {database}.t TO {account}"),
    ),
    Fault(
        "a table that does not exist",
        {"tables": "stop"},
        options={"tables": "{database}.nope"},
        cure=_create_table,
    ),
    Fault(
        "few connections",
        {"connection limit": "warning"},
        (_56, _57, _MARIADB),
        sql=("GRANT USAGE ON *.* TO {account} WITH MAX_USER_CONNECTIONS 3",),
    ),
    Fault(
        "few connections on MySQL 9",
        {"connection limit": "warning"},
        (_9,),
        sql=("ALTER USER {account} WITH MAX_USER_CONNECTIONS 3",),
    ),
    Fault(
        "an expired password",
        {"connection": "stop"},
        NEWER,
        sql=("ALTER USER {account} PASSWORD EXPIRE",),
    ),
    Fault(
        "a locked account",
        {"connection": "stop"},
        (*NEWER, _MARIADB),
        sql=("ALTER USER {account} ACCOUNT LOCK",),
    ),
    Fault(
        "a wrong password",
        {"connection": "stop"},
        options={"password": "wrong"},
        cure=_correct_password,
    ),
    Fault(
        "an account that requires TLS",
        {"connection": "stop"},
        NEWER,
        sql=("ALTER USER {account} REQUIRE SSL",),
        options={"sslMode": "DISABLED"},
        cure=_take_option,
    ),
    # Tables.
    Fault(
        "a table without a key",
        {"primary keys": "warning"},
        sql=(_GIVE_LOCKS, "CREATE TABLE {database}.k (ID INT)"),
    ),
    Fault(
        "a table whose counter is no key",
        {"primary keys": "warning"},
        sql=(_GIVE_LOCKS, "CREATE TABLE {database}.k (n INT AUTO_INCREMENT, v INT, KEY (n))"),
    ),
    Fault(
        "a partitioned table without a key",
        {"primary keys": "warning"},
        sql=(
            _GIVE_LOCKS,
            "CREATE TABLE {database}.k (n INT, v INT NOT NULL) PARTITION BY HASH (v) PARTITIONS 2",
        ),
        cure=_add_key_with_partitioning,
    ),
    Fault(
        "a table without a key that cannot be locked",
        {"primary keys": "warning", "keyless locks": "stop"},
        sql=("CREATE TABLE {database}.k (n INT)",),
    ),
    Fault(
        "a hostile name",
        {"primary keys": "warning"},
        sql=(_GIVE_LOCKS, f"CREATE TABLE {{database}}.{_HOSTILE} (n INT)"),
    ),
    Fault(
        "a MyISAM table",
        {"snapshot locks": "warning"},
        sql=(_GIVE_LOCKS, "CREATE TABLE {database}.m (id INT PRIMARY KEY) ENGINE=MyISAM"),
    ),
    Fault(
        "a MyISAM table that cannot be locked",
        {"snapshot locks": "warning", "snapshot reads": "stop"},
        sql=("CREATE TABLE {database}.m (id INT PRIMARY KEY) ENGINE=MyISAM",),
    ),
    Fault(
        "a MEMORY table",
        {"snapshot locks": "warning", "unlogged tables": "warning"},
        (_56, _MARIADB),
        sql=(_GIVE_LOCKS, "CREATE TABLE {database}.m (id INT PRIMARY KEY) ENGINE=MEMORY"),
    ),
    Fault(
        "INSERT without SELECT",
        {"snapshot reads": "stop"},
        sql=(
            "REVOKE SELECT ON {database}.* FROM {account}",
            "GRANT INSERT ON {database}.* TO {account}",
        ),
        options={"tables": "{database}.t"},
    ),
    Fault(
        "a foreign key with CASCADE",
        {"foreign keys": "warning"},
        (_56, _57, _MARIADB),
        sql=(
            (
                "CREATE TABLE {database}.c (id INT PRIMARY KEY, `p'q` INT, CONSTRAINT `f``k`"
                " FOREIGN KEY (`p'q`) REFERENCES {database}.t (id) ON DELETE CASCADE"
                " ON UPDATE SET NULL)"
            ),
        ),
    ),
    Fault(
        "a long DECIMAL",
        {"column types": "warning"},
        sql=(
            (
                "CREATE TABLE {database}.d (id INT PRIMARY KEY, v DECIMAL(65,30) NOT NULL"
                " DEFAULT 1.5 COMMENT 'a, b')"
            ),
            "INSERT INTO {database}.d VALUES (1, 2.5)",
        ),
    ),
    Fault(
        "zero dates",
        {"zero dates": "warning"},
        sql=(
            "SET SESSION sql_mode = ''",
            (
                "CREATE TABLE {database}.z (id INT PRIMARY KEY, v DATETIME NOT NULL DEFAULT"
                " '0000-00-00 00:00:00')"
            ),
        ),
    ),
    Fault(
        "columns that are one in Delta",
        {"column names": "stop"},
        sql=("CREATE TABLE {database}.c (id INT PRIMARY KEY, `a b` INT DEFAULT 3, a_b INT)",),
    ),
    Fault(
        "a reserved name",
        {"column names": "warning"},
        sql=("CREATE TABLE {database}.r (id INT PRIMARY KEY, _seq ENUM('a,', 'b') NOT NULL)",),
    ),
    # The target.
    Fault(
        "files at the target",
        {"target tables": "warning"},
        plant=_other_files,
        cure=_remove_lake,
    ),
    Fault(
        "a Delta table of another program",
        {"target tables": "stop"},
        plant=_foreign_table,
        cure=_remove_lake,
    ),
    Fault(
        "a target that cannot be written",
        {"target storage": "stop"},
        plant=_file_in_path,
        cure=_remove_lake,
    ),
    Fault("one path of two tables", {"target paths": "stop"}, plant=_one_path, cure=_two_paths),
]
