"""Debian's interpreters as executable files, for virtual environments and Spark's workers."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from helpers.unpacked.program import UnpackedProgram

__all__ = ["UnpackedPython", "unpacked_python"]


@dataclass(frozen=True)
class UnpackedPython(UnpackedProgram):
    """A Python with its headers and the wheel of pip.

    Its paths are absolute: a checkout that is moved must unpack it again.
    """

    @property
    def executable(self) -> str:
        """The value of `sys.executable` outside of virtual environments."""
        return str(self.root / self.program)

    def _adapt(self) -> None:
        self._write_script()
        self._correct_folder_of_wheels()
        self._link_headers()

    def _write_script(self) -> None:
        """Replace the program with a script that runs it through its loader.

        Python searches its environment next to argv[0], which is the script, or a link to it in the
        `bin` of a virtual environment.
        """
        script = self.root / self.program
        binary = script.with_name(f"{script.name}.elf")
        script.rename(binary)
        loader, *options, _ = self.command()
        script.write_text(
            "#!/bin/sh\n"
            f'exec {shlex.quote(loader)} --argv0 "$0" {shlex.join(options)}'
            f' {shlex.quote(str(binary))} "$@"\n'
        )
        script.chmod(0o755)

    def _correct_folder_of_wheels(self) -> None:
        """Correct the absolute folder in which `venv` searches the wheel of pip."""
        for settings in (self.root / "usr" / "lib" / self.name).glob("_sysconfigdata_*.py"):
            text = settings.read_text()
            wheels = "/usr/share/python-wheels"
            settings.write_text(text.replace(f"'{wheels}", f"'{self.root}{wheels}"))

    def _link_headers(self) -> None:
        """Let `pyconfig.h` include the one of this machine, without the headers of that glibc.

        A compiler of this system would use those instead of its own.
        """
        (self.root / "usr" / "include" / self.name / self.multiarch).symlink_to(
            f"../{self.multiarch}"
        )


def unpacked_python(version: str, suite: str) -> UnpackedPython:
    """Return the Python of this version, such as `3.14`, from the suite."""
    name = f"python{version}"
    return UnpackedPython(
        name,
        suite,
        # Wheels need the C++ library.
        (f"{name}-dev", f"{name}-venv", "libstdc++6"),
        f"usr/bin/{name}",
        "test-pythons",
    )
