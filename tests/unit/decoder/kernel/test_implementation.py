"""Selection of the implementation: requested, missing or misspelled, each in a new process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pyspark_mysqlbinlog
from helpers.waiting import patience
from pyspark_mysqlbinlog.decoder.kernel.implementation import (
    KERNEL_MODULES,
    VARIABLE,
    implementation,
    using,
)

PACKAGE = Path(pyspark_mysqlbinlog.__file__).parent
ASK_TWICE = """
import threading
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
threads = [threading.Thread(target=implementation) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(implementation())
"""


def ask(asked: str | None, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a process that requests its implementation in eight threads, and then prints it."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if asked is not None:
        environment[VARIABLE] = asked
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, "-P", "-W", "always", "-c", ASK_TWICE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def test_environment_variable_selects_the_python_implementation() -> None:
    asked = ask("python")
    assert (asked.stdout, asked.stderr) == ("python\n", "")


@pytest.mark.parametrize("unset", [None, ""])
def test_missing_kernel_warns_once_and_falls_back_to_python(
    without_kernel: Path, unset: str | None
) -> None:
    asked = ask(unset, without_kernel)
    assert asked.stdout == "python\n"
    assert asked.stderr.count("Warning") == 1
    assert "RuntimeWarning: pyspark-mysqlbinlog decodes in pure Python" in asked.stderr
    assert f"this installation has no compiled {KERNEL_MODULES[0]}" in asked.stderr
    assert "C++17 compiler" in asked.stderr


def test_requested_but_missing_kernel_raises_kernel_not_found_error(without_kernel: Path) -> None:
    asked = ask("c", without_kernel)
    assert asked.returncode == 1
    line = last_line(asked.stderr)
    assert line.startswith(
        "pyspark_mysqlbinlog.errors.KernelNotFoundError: MYSQLBINLOG_IMPL=c requires"
    )
    assert KERNEL_MODULES[0] in line


def test_unloadable_kernel_falls_back_to_python_unless_requested(
    without_kernel: Path, tmp_path: Path
) -> None:
    shutil.copytree(without_kernel, tmp_path, dirs_exist_ok=True)
    name = KERNEL_MODULES[0].rpartition(".")[2]
    (tmp_path / PACKAGE.name / "decoder/kernel" / f"{name}.so").write_bytes(b"no library")
    asked = ask(None, tmp_path)
    assert asked.stdout == "python\n"
    assert f"{KERNEL_MODULES[0]} cannot be imported: " in asked.stderr
    assert ask("c", tmp_path).returncode == 1


@pytest.mark.parametrize("misspelt", ["C", "cython", "py", " c"])
def test_misspelled_implementation_raises_option_error(misspelt: str) -> None:
    asked = ask(misspelt)
    assert asked.returncode == 1
    assert last_line(asked.stderr) == (
        "pyspark_mysqlbinlog.errors.OptionError: the environment variable MYSQLBINLOG_IMPL must be"
        f" c or python, found {misspelt!r}; if unset, the compiled kernel is used where there is"
        " one"
    )


def test_using_block_restores_the_previous_implementation() -> None:
    before = implementation()
    with using("python"):
        assert implementation() == "python"
        with pytest.raises(ZeroDivisionError), using("python"):
            raise ZeroDivisionError
        assert implementation() == "python"
    assert implementation() == before
