"""Install the named programs that are missing."""

from __future__ import annotations

import shutil
import subprocess
import sys

from helpers.unpacked import MARIADB, MYSQL, PYTHONS

_PROGRAMS = {each.name: each for each in (MYSQL, MARIADB, *PYTHONS.values())}


def main(names: list[str]) -> None:
    for program in (_PROGRAMS[name] for name in names):
        if program.missing() and shutil.which("apt-get") and shutil.which("dpkg-deb"):
            sys.stdout.write(f"unpacking {program.name} from Debian's {program.suite}\n")
            sys.stdout.flush()
            try:
                program.install()
            except (subprocess.CalledProcessError, LookupError) as error:
                # Its tests are skipped then, and fail in CI.
                sys.stdout.write(f"{program.name} could not be unpacked: {error}\n")
        sys.stdout.write(f"{program.name}: {program.missing() or 'installed'}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
