"""Fixtures for servers and implementations, and the sample and the order of test cases.

Tests of a missing server or implementation are skipped with the reason. With CI=true they fail,
except for MySQL 5.7.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from secrets import randbits
from typing import Any

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

import pyspark_mysqlbinlog
from helpers.logs.live_log import new_database
from helpers.memory_folder import folder_in_memory
from helpers.needed_servers import CI, need
from helpers.order import alternate_files
from helpers.samples import mark_newer, take_samples
from helpers.servers import (
    MariaDB11Server,
    MySQL9Server,
    MySQL56Server,
    Server,
    captured_files,
    serve_binlogs,
)
from helpers.servers.available import KINDS, MISSING, live_kind, mariadb_kind
from helpers.servers.mysql57 import MySQL57Server
from helpers.streams.forked_python import quick_workers
from helpers.streams.spark_session import make_spark
from pyspark_mysqlbinlog.decoder.kernel.implementation import (
    VARIABLE,
    Implementation,
    described,
    implementation,
    using,
)
from pyspark_mysqlbinlog.errors import KernelNotFoundError

# The warning about a missing kernel is shown in the header and fails no test.
with warnings.catch_warnings(record=True) as FALLBACK:
    warnings.simplefilter("always")
    if implementation() == "c":
        # Processes that tests start must use the kernel, too, or fail.
        os.environ[VARIABLE] = "c"

# Examples have no deadline: their duration depends on the machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Each run has new seeds; set these variables to repeat a run.
FUZZ_SEED = os.environ.setdefault("MYSQLBINLOG_FUZZ_SEED", str(randbits(32)))
DDL_SEED = os.environ.setdefault("DDL_SEED", str(randbits(32)))
SAMPLE_SEED = os.environ.setdefault("MYSQLBINLOG_SAMPLE_SEED", str(randbits(32)))
# Test -> (cases that run, all cases), for tests of which only a sample of cases runs.
SAMPLES: dict[str, tuple[int, int]] = {}

# Spark's Python workers use `python3` from the PATH unless PYSPARK_PYTHON is set. They would import
# the package from their working directory, which is the checkout, instead of the installed package
# with its kernel.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ["PYTHONSAFEPATH"] = "1"

# Also the folders of `tmp_path`, and those of processes that tests start.
if "TMPDIR" not in os.environ and (memory := folder_in_memory()) is not None:
    os.environ["TMPDIR"] = tempfile.tempdir = memory


def pytest_report_header() -> list[str]:
    there = [kind.name for kind in KINDS if MISSING[kind] is None]
    jars = " and Delta's jars" if os.environ.get("MYSQLBINLOG_DELTA_JARS") else ""
    absent = [f"  no {kind.name}: {reason}" for kind, reason in MISSING.items() if reason]
    return [
        f"servers under test: {', '.join(there) or 'none'}",
        f"live writes to {live_kind().name} and {mariadb_kind().name}",
        *absent,
        f"implementation under test: {described()}",
        f"with Spark {version('pyspark')}, deltalake {version('deltalake')}{jars}",
        *(f"  {warning.message}" for warning in FALLBACK),
        f"fuzzing with MYSQLBINLOG_FUZZ_SEED={FUZZ_SEED}, random DDL with DDL_SEED={DDL_SEED}",
        f"samples of cases with MYSQLBINLOG_SAMPLE_SEED={SAMPLE_SEED}; `make test-slow` runs all",
        f"package under test: {Path(pyspark_mysqlbinlog.__file__).parent}",
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("sample")
    if marker is not None and "of" in marker.kwargs:
        metafunc.fixturenames.append("_part")
        metafunc.parametrize("_part", range(marker.kwargs["of"]), ids="part {}".format)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    alternate_files(items)
    mark_newer(items)
    chosen = config.getoption("markexpr")
    is_whole, is_newer = chosen == "slow", chosen.startswith("newer")
    cases = os.environ.get("MYSQLBINLOG_NEWER_CASES")
    SAMPLES.update(
        take_samples(
            items,
            SAMPLE_SEED,
            is_whole=is_whole,
            is_newer=is_newer,
            newer_cases=int(cases) if cases else None,
        )
    )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    # With pytest-xdist, the worker processes have the cases; the process that reports has none.
    SAMPLES.update(getattr(node, "workeroutput", {}).get("samples", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["samples"] = SAMPLES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if SAMPLES:
        title = f"samples of cases with MYSQLBINLOG_SAMPLE_SEED={SAMPLE_SEED}"
        terminalreporter.section(title)
        for test, (count, of) in sorted(SAMPLES.items()):
            terminalreporter.line(f"{count} of {of}: {test}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # Failures are written at once, so that an interrupted run shows them.
    if CI and report.failed:
        sys.stdout.write(f"\n{report.nodeid} failed at {report.when}:\n{report.longreprtext}\n")
        sys.stdout.flush()


def pytest_sessionstart(session: pytest.Session) -> None:
    # Tests that run on the checkout do not detect a file that is missing in the wheel.
    package = Path(pyspark_mysqlbinlog.__file__).resolve()
    if CI and package.is_relative_to(session.config.rootpath / "pyspark_mysqlbinlog"):
        raise pytest.UsageError(
            "the installed package must be tested, not the checkout: use `make test`"
        )
    # The package also installs without a compiler, and would then be tested without its kernel.
    if CI and FALLBACK:
        raise pytest.UsageError(str(FALLBACK[0].message))


def _running(kind: type[Server]) -> Iterator[Server]:
    need(kind)
    with kind() as server:
        yield server


@pytest.fixture(scope="session")
def mysql56() -> Iterator[Server]:
    """Yield MySQL 5.6.24, shared by the whole run; each test must use its own databases."""
    yield from _running(MySQL56Server)


@pytest.fixture(scope="session")
def mysql57() -> Iterator[Server]:
    """Yield MySQL 5.7 from MYSQL57_HOME, shared by the whole run; see `mysql56`."""
    yield from _running(MySQL57Server)


@pytest.fixture(scope="session")
def mariadb(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield a MariaDB (see `mariadb_kind`), shared by the whole run; see `mysql56`."""
    if mariadb_kind() is MariaDB11Server:
        yield request.getfixturevalue("mariadb11")
    else:
        yield from _running(mariadb_kind())


@pytest.fixture(scope="session")
def mysql9() -> Iterator[Server]:
    """Yield the newest MySQL 9, shared by the whole run; see `mysql56`."""
    yield from _running(MySQL9Server)


@pytest.fixture(scope="session")
def mariadb11() -> Iterator[Server]:
    """Yield MariaDB 11.8, shared by the whole run; see `mysql56`."""
    yield from _running(MariaDB11Server)


@pytest.fixture(scope="session")
def live_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield the MySQL for live writes (see `live_kind`), shared by the whole run; see `mysql56`."""
    if live_kind() in {MySQL56Server, MySQL57Server, MySQL9Server}:
        yield request.getfixturevalue(live_kind().name)
    else:
        yield from _running(live_kind())


@pytest.fixture(params=["mysql", "mariadb"])
def any_server(request: pytest.FixtureRequest) -> Server:
    """Return a MySQL and then a MariaDB server, for results that must not depend on the kind."""
    server: Server = request.getfixturevalue(
        "mariadb" if request.param == "mariadb" else "live_server"
    )
    return server


def _database_of(test: str) -> str:
    return "t_" + "".join(c if c.isalnum() else "_" for c in test.lower())[:50]


@pytest.fixture
def database(live_server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the name of an empty database on `live_server`, made for this test."""
    with new_database(live_server, _database_of(request.node.name)) as name:
        yield name


@pytest.fixture
def any_database(any_server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the name of an empty database on `any_server`, made for this test."""
    with new_database(any_server, _database_of(request.node.name)) as name:
        yield name


@pytest.fixture(scope="session")
def ddl_seed() -> int:
    """Return the seed of random DDL; the run's header shows it."""
    return int(DDL_SEED)


@pytest.fixture(scope="session")
def serve_captured() -> Iterator[Callable[[str], Server]]:
    """Yield a function that returns a 5.6 server which streams a scenario's recorded 5.7 logs.

    For example ``serve_captured("rotations")``.
    """
    need(MySQL56Server)
    servers: dict[str, Server] = {}

    def serve(scenario: str) -> Server:
        if scenario not in servers:
            servers[scenario] = serve_binlogs(captured_files(scenario))
        return servers[scenario]

    try:
        yield serve
    finally:
        for server in servers.values():
            server.stop()


@pytest.fixture(name="implementation", scope="module", params=["c", "python"])
def _implementation(request: pytest.FixtureRequest) -> Iterator[Implementation]:
    """Yield both implementations, one after the other; a test uses the one that is yielded.

    For a whole module: `pytestmark = pytest.mark.usefixtures("implementation")`.
    """
    chosen: Implementation = request.param
    try:
        with using(chosen):
            yield chosen
    except KernelNotFoundError as error:
        pytest.skip(error.message)  # with CI=true, pytest_sessionstart has ended the session


@pytest.fixture(scope="session")
def without_kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of an installation without a compiled kernel."""
    folder = tmp_path_factory.mktemp("without_kernel")
    package = Path(pyspark_mysqlbinlog.__file__).parent
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(package, folder / package.name, ignore=ignored)
    return folder


@pytest.fixture(scope="session")
def quick_python() -> Iterator[None]:
    """Make Spark's Python processes forks of a server (see helpers/streams/forked_python.py)."""
    with quick_workers():
        yield


@pytest.fixture(scope="session")
def spark(quick_python: None) -> Iterator[SparkSession]:
    """Yield one local Spark session for the whole run."""
    session = make_spark()
    yield session
    session.stop()
