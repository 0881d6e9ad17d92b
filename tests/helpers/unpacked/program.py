"""Programs of other Debian suites, unpacked into .cache and run there; the system is unchanged.

apt fetches each program with all libraries that it depends on, into folders that need no root. The
program runs through the dynamic loader from these packages.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["UnpackedProgram"]

CACHE = (Path(__file__).resolve().parents[3] / ".cache").resolve()
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Debian's multiarch folders, by what `uname -m` prints.
_LIBRARIES = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}


@dataclass(frozen=True)
class UnpackedProgram:
    """One program of one suite.

    Attributes
    ----------
    name : the folder in .cache.
    suite : of Debian. `sid` has the newest version, which is not known beforehand.
    packages : to unpack, with their dependencies.
    program : its path below the folder that the packages are unpacked into.
    target : of make, which installs it.
    """

    name: str
    suite: str
    packages: tuple[str, ...]
    program: str
    target: str

    @property
    def home(self) -> Path:
        """The program's folder; its subfolder `root` contains the files of the packages."""
        given = os.environ.get("MYSQLBINLOG_SERVERS")
        return (Path(given).resolve() if given else CACHE) / self.name

    @property
    def root(self) -> Path:
        return self.home / "root"

    @property
    def multiarch(self) -> str:
        """Debian's name of the folders for this machine."""
        return _LIBRARIES[platform.machine()]

    def missing(self) -> str | None:
        """Return why the program cannot run here, and what installs it; None if it can."""
        if platform.system() != "Linux" or platform.machine() not in _LIBRARIES:
            return f"{self.name} from Debian runs on Linux only: this is {platform.platform()}"
        if not (self.home / "complete").is_file():
            return f"{self.name} is not installed: run `make {self.target}` on Debian"
        return None

    def command(self) -> list[str]:
        """Return the loader, its libraries and the program."""
        libraries = self.root / "usr" / "lib" / self.multiarch
        loader = next((self.root / "usr").glob("lib*/**/ld-linux-*.so.*"))
        return [
            str(loader),
            "--library-path",
            f"{libraries}:{libraries / 'private'}",
            str(self.root / self.program),
        ]

    def install(self) -> None:
        """Fetch and unpack the packages; remove the files of an interrupted call first.

        Raises
        ------
        subprocess.CalledProcessError : of apt or dpkg, which print the reason.
        LookupError : no mirror of Debian is known.
        """
        shutil.rmtree(self.home, ignore_errors=True)
        apt = self.home / "apt"
        for folder in ("lists/partial", "archives/partial"):
            (apt / folder).mkdir(parents=True)
        (apt / "sources.list").write_text(
            f"deb [signed-by={_KEYRING}] {_debian_mirror()} {self.suite} main\n"
        )
        settings = {
            "Dir::Etc::sourcelist": apt / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State": apt,
            "Dir::State::lists": apt / "lists",
            # Nothing counts as installed: each library comes from the suite.
            "Dir::State::status": "/dev/null",
            "Dir::Cache": apt,
            "Dir::Cache::archives": apt / "archives",
            "APT::Sandbox::User": "",
            "Debug::NoLocking": "1",
        }
        options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
        for command in (
            ["update"],
            ["install", "--download-only", "--yes", "--no-install-recommends", *self.packages],
        ):
            subprocess.run(
                ["apt-get", "-qq", *options, *command], check=True, stdout=subprocess.DEVNULL
            )
        for package in sorted((apt / "archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", str(package), str(self.root)], check=True)
        shutil.rmtree(apt)
        self._adapt()
        (self.home / "complete").touch()

    def _adapt(self) -> None:
        """Change files that do not work outside of the root folder of a system."""


def _debian_mirror() -> str:
    """Return the mirror from which this system's packages come."""
    formatted = "$(REPO_URI) $(ORIGIN) $(SUITE)"
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", formatted],
        check=True,
        capture_output=True,
        text=True,
    )
    for line in done.stdout.splitlines():
        uri, origin, suite = line.split(maxsplit=2)
        if origin == "Debian" and "security" not in f"{uri} {suite}":
            return uri
    raise LookupError("apt's sources name no mirror of Debian")
