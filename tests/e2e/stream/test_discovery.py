"""Spark finds the source after a plain `pip install .`, and the lookup loads no heavy module."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import venv
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from helpers.parity.decoding import CAPTURED
from helpers.waiting import patience
from pyspark_mysqlbinlog.decoder.kernel.implementation import VARIABLE

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ["pyspark", "pyarrow", "pydantic", "pymysql", "tenacity", "sqlglot", "pandas", "numpy"]


def _can_build() -> bool:
    """Return whether setuptools 77 and Cython 3.1 are installed, which the build requires."""
    try:
        setuptools, cython = (
            tuple(int(part) for part in version(name).split(".")[:2])
            for name in ("setuptools", "cython")
        )
        return setuptools >= (77, 0) and cython >= (3, 1)
    except PackageNotFoundError:
        return False


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment with this checkout and the current dependencies."""
    folder = tmp_path_factory.mktemp("discovery")
    # pip builds inside the given folder, so it gets a copy.
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "pyspark_mysqlbinlog",
        source / "pyspark_mysqlbinlog",
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )
    for room in ("connector", "protocol", "decoder", "checkpoints"):
        (source / room).symlink_to(Path("pyspark_mysqlbinlog") / room)
    environment = folder / "environment"
    venv.create(environment, symlinks=True, with_pip=False)
    python = environment / "bin" / "python"
    (site,) = (environment / "lib").glob("python*/site-packages")
    # The dependencies come from the environment that runs this test.
    (site / "inherited.pth").write_text(sysconfig.get_path("purelib") + "\n")
    offline = ["--no-build-isolation", "--no-index"] if _can_build() else []
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    done = subprocess.run(
        [*command, "--no-deps", "--force-reinstall", *offline, str(source)],
        # The tests only check discovery and imports, for which no kernel is needed.
        env=clean_environment() | {"MYSQLBINLOG_KERNEL": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not any((site / room).exists() for room in ("connector", "protocol", "decoder", "tests"))
    return python


def clean_environment() -> dict[str, str]:
    """Return the environment without PYTHONPATH, which could select the checkout instead.

    MYSQLBINLOG_IMPL is removed too, because the installed package has no kernel.
    """
    own_variables = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", VARIABLE)
    return {name: value for name, value in os.environ.items() if name not in own_variables}


def run(python: Path, folder: Path, program: str, **environment: str) -> str:
    """Run a program in an empty folder; return the last line that it prints."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [str(python), "-c", textwrap.dedent(program)],
        cwd=folder,
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
        timeout=patience(120),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_spark_finds_the_source_without_registration(installed: Path, tmp_path: Path) -> None:
    program = """
        import json, sys
        from pyspark.sql import SparkSession
        spark = (
            SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1").getOrCreate()
        )
        read = spark.read.format("mysqlbinlog").option("path", sys.argv[1:] or LOG).load()
        stream = spark.readStream.format("mysqlbinlog").option("host", "h").option("user", "u")
        import pyspark_mysqlbinlog
        print(json.dumps([
            read.count(), read.columns == stream.load().columns, pyspark_mysqlbinlog.__file__
        ]))
    """.replace("sys.argv[1:] or LOG", repr(str(CAPTURED / "rotations.*.binlog")))
    printed = run(installed, tmp_path / "job", program, PYSPARK_PYTHON=str(installed))
    count, same_columns, file = json.loads(printed)
    assert count == 26
    assert same_columns
    assert Path(file).is_relative_to(installed.parents[1])


def loaded_after(python: Path, folder: Path, statement: str) -> list[str]:
    program = f"""
        import json, sys
        {statement}
        print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
    """
    modules: list[str] = json.loads(run(python, folder, program))
    return modules


def test_import_of_the_package_loads_no_heavy_dependency(installed: Path, tmp_path: Path) -> None:
    modules = loaded_after(installed, tmp_path, "import pyspark_mysqlbinlog")
    assert "pyspark_mysqlbinlog" in modules
    assert set(HEAVY) & set(modules) == set()


def test_data_source_lookup_loads_no_module_that_spark_has_not_loaded(
    installed: Path, tmp_path: Path
) -> None:
    spark = loaded_after(installed, tmp_path, "import pyspark.sql.datasource")
    looked_up = loaded_after(
        installed,
        tmp_path,
        "import pyspark_mysqlbinlog; assert hasattr(pyspark_mysqlbinlog, 'DefaultSource')",
    )
    assert set(looked_up) - set(spark) == {"pyspark_mysqlbinlog"}
