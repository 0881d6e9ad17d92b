"""Servers and implementations as fixtures, and samples of cases.

A missing server or implementation is a skip with its reason, and a failure where CI=true.
"""

from __future__ import annotations

import os
import shutil
import sys
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
from helpers.needed_servers import CI, need
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

# What there is to say of a kernel that is not there: in the header, rather than as a failed test.
with warnings.catch_warnings(record=True) as FALLBACK:
    warnings.simplefilter("always")
    if implementation() == "c":
        # Whatever process a test starts has the kernel, too, or fails.
        os.environ[VARIABLE] = "c"

# No example is too slow: how long one takes tells of the machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Others every time; whoever wants to see a run again gives its seeds.
FUZZ_SEED = os.environ.setdefault("MYSQLBINLOG_FUZZ_SEED", str(randbits(32)))
DDL_SEED = os.environ.setdefault("DDL_SEED", str(randbits(32)))
SAMPLE_SEED = os.environ.setdefault("MYSQLBINLOG_SAMPLE_SEED", str(randbits(32)))
# How many cases run, and how many there are, of each test that has a sample of them.
SAMPLES: dict[str, tuple[int, int]] = {}

# Spark's Python workers take `python3` from the PATH unless they are told which; and they would
# import the package from the folder that they are started in, which is the checkout, instead of the
# installed one with its kernel.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ["PYTHONSAFEPATH"] = "1"


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
    # Processes of pytest-xdist have the cases, and the one that reports has none.
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
    # A run that is cut off before its end still tells what has failed.
    if CI and report.failed:
        sys.stdout.write(f"\n{report.nodeid} failed at {report.when}:\n{report.longreprtext}\n")
        sys.stdout.flush()


def pytest_sessionstart(session: pytest.Session) -> None:
    # A wheel that lacks a file passes every test that runs on the checkout instead of it.
    package = Path(pyspark_mysqlbinlog.__file__).resolve()
    if CI and package.is_relative_to(session.config.rootpath / "pyspark_mysqlbinlog"):
        raise pytest.UsageError(
            "the installed package must be tested, not the checkout: use `make test`"
        )
    # Without a compiler the package installs all the same, and would be tested without its kernel.
    if CI and FALLBACK:
        raise pytest.UsageError(str(FALLBACK[0].message))


def _running(kind: type[Server]) -> Iterator[Server]:
    need(kind)
    with kind() as server:
        yield server


@pytest.fixture(scope="session")
def mysql56() -> Iterator[Server]:
    """MySQL 5.6.24, shared by the whole run: use databases of your own."""
    yield from _running(MySQL56Server)


@pytest.fixture(scope="session")
def mariadb(request: pytest.FixtureRequest) -> Iterator[Server]:
    """MariaDB (see `mariadb_kind`), shared by the whole run: use databases of your own."""
    if mariadb_kind() is MariaDB11Server:
        yield request.getfixturevalue("mariadb11")
    else:
        yield from _running(mariadb_kind())


@pytest.fixture(scope="session")
def mysql9() -> Iterator[Server]:
    """The newest MySQL 9, shared by the whole run: use databases of your own."""
    yield from _running(MySQL9Server)


@pytest.fixture(scope="session")
def mariadb11() -> Iterator[Server]:
    """MariaDB 11.8, shared by the whole run: use databases of your own."""
    yield from _running(MariaDB11Server)


@pytest.fixture(scope="session")
def live_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The MySQL for live writes (see `live_kind`): use databases of your own."""
    shared: dict[type[Server], str] = {MySQL56Server: "mysql56", MySQL9Server: "mysql9"}
    if live_kind() in shared:
        yield request.getfixturevalue(shared[live_kind()])
    else:
        yield from _running(live_kind())


@pytest.fixture(params=["mysql", "mariadb"])
def any_server(request: pytest.FixtureRequest) -> Server:
    """Both kinds of server, one after the other, for what must not depend on the kind."""
    server: Server = request.getfixturevalue(
        "mariadb" if request.param == "mariadb" else "live_server"
    )
    return server


def _database_of(test: str) -> str:
    return "t_" + "".join(c if c.isalnum() else "_" for c in test.lower())[:50]


@pytest.fixture
def database(live_server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database of this test's own on `live_server`; gives its name."""
    with new_database(live_server, _database_of(request.node.name)) as name:
        yield name


@pytest.fixture
def any_database(any_server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database of this test's own on `any_server`; gives its name."""
    with new_database(any_server, _database_of(request.node.name)) as name:
        yield name


@pytest.fixture(scope="session")
def ddl_seed() -> int:
    """What random DDL begins with; the run's header shows it."""
    return int(DDL_SEED)


@pytest.fixture(scope="session")
def serve_captured() -> Iterator[Callable[[str], Server]]:
    """``serve_captured("rotations")``: a 5.6 server that streams that scenario's 5.7 logs."""
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
    """Both implementations, one after the other; whoever asks `implementation` gets this one.

    For a whole module: `pytestmark = pytest.mark.usefixtures("implementation")`.
    """
    chosen: Implementation = request.param
    try:
        with using(chosen):
            yield chosen
    except KernelNotFoundError as error:
        pytest.skip(error.message)  # with CI=true the session has ended long before


@pytest.fixture(scope="session")
def without_kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installation whose kernel was not compiled."""
    folder = tmp_path_factory.mktemp("without_kernel")
    package = Path(pyspark_mysqlbinlog.__file__).parent
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(package, folder / package.name, ignore=ignored)
    return folder


@pytest.fixture(scope="session")
def quick_python() -> Iterator[None]:
    """From here on, Spark's Python processes are forks (see helpers/streams/forked_python.py)."""
    with quick_workers():
        yield


@pytest.fixture(scope="session")
def spark(quick_python: None) -> Iterator[SparkSession]:
    """One local Spark for the whole run."""
    session = make_spark()
    yield session
    session.stop()
