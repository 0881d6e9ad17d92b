"""Print the path of an interpreter: the one on the PATH, or else an unpacked one."""

from __future__ import annotations

import shutil
import subprocess
import sys

from helpers.unpacked import PYTHONS

__all__ = ["find_python"]

# Needed to create a virtual environment, and to compile the kernel.
_NEEDED = """
import ensurepip, pathlib, sysconfig
assert (pathlib.Path(sysconfig.get_path("include")) / "Python.h").is_file(), "Python.h is missing"
"""


def find_python(version: str) -> str:
    """Return the path of the Python of this version, such as `3.14`.

    Raises
    ------
    LookupError : there is none; the message contains how to get one.
    subprocess.CalledProcessError : apt or dpkg failed.
    """
    name = f"python{version}"
    installed = shutil.which(name)
    if installed:
        tried = subprocess.run([installed, "-c", _NEEDED], check=False, capture_output=True)
        if tried.returncode == 0:
            return installed
    if version not in PYTHONS:
        raise LookupError(
            f"{name} is missing: no suite of Debian has it; put one on the PATH, with venv and"
            " headers"
        )
    program = PYTHONS[version]
    if program.missing():
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            raise LookupError(
                f"{name} is missing: put one on the PATH, with venv and headers, or use Debian"
            )
        program.install()
    return program.executable


def main(version: str) -> None:
    try:
        sys.stdout.write(f"{find_python(version)}\n")
    except (LookupError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
