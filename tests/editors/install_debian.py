"""Editors out of Debian packages, unpacked in a directory of their own and run with their own libraries.

So Neovim 0.12, Emacs 30 and lsp-mode 10 run on an older Debian, and nothing of the system changes. Where the
packages come from is what apt is configured with; only the release's name is replaced.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

SUITE = "forky"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
SECONDS = 120

# What Emacs's just-in-time compiler would want, and what only tells dpkg or documents.
_NOT_NEEDED = re.compile(
    r"binutils|libbinutils|libgprofng|libctf|linux-libc-dev|-dev$|-dev-bin$|lib[alt]san|libhwasan|libubsan"
    r"|libitm|libquadmath|install-info|emacs-el$|gcc-\d+-base|emacsen-common|dh-elpa|libasound2-data"
    r"|libsframe|gconv-modules-extra"
)
# lsp-mode and what it stands on, in an order in which each finds the compiled ones before it.
_LISP = (
    ("dash-*/*.el", "s-*/*.el", "f-*/*.el", "ht-*/*.el", "spinner-*/*.el", "lv-*/*.el"),
    ("markdown-mode-*/*.el",),
    ("lsp-mode-*/lsp-protocol.el",),
    ("lsp-mode-*/lsp-mode.el",),
    ("lsp-mode-*/lsp-inline-completion.el", "lsp-mode-*/lsp-completion.el"),
)


class NotHere(Exception):
    """This machine cannot have it; the message says why."""


def run(*command: str | Path, cwd: Path | None = None, seconds: float = SECONDS) -> str:
    """A command's output; `NotHere` with its last line of error."""
    try:
        done = subprocess.run(
            [str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=seconds
        )
    except FileNotFoundError:
        raise NotHere(f"there is no {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise NotHere(f"{command[0]} took more than {seconds:.0f} s") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        # An address in it would be one of this machine's configuration.
        cause = re.sub(r"\w+://\S+", "…", said[-1]) if said else f"exit status {done.returncode}"
        raise NotHere(f"{Path(str(command[0])).name}: {cause}")
    return done.stdout


class Packages:
    """apt with lists and a cache of its own, over one release."""

    def __init__(self, directory: Path) -> None:
        for name in ("lists/partial", "cache/archives/partial"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        if not Path(KEYS).exists():
            raise NotHere("this is no Debian: its archive's keys are missing")
        places = _archives()
        if not places:
            # A new machine has no lists yet.
            run("apt-get", "-q", "update")
            places = _archives()
        if not places:
            raise NotHere("apt is configured with no archive of Debian")
        (directory / "status").touch()
        (directory / "sources.list").write_text(f"deb [signed-by={KEYS}] {places[0]} {SUITE} main\n")
        options = {
            "Dir::Etc::sourcelist": directory / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State::lists": directory / "lists",
            "Dir::State::status": directory / "status",
            "Dir::Cache": directory / "cache",
            "APT::Sandbox::User": "root",
        }
        self._options = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        run("apt-get", "-q", *self._options, "update")

    def unpack(self, root: Path, *names: str) -> None:
        """Unpack packages and all that they need below ``root``."""
        plan = run("apt-get", "-s", *self._options, "--no-install-recommends", "install", *names)
        wanted = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
        wanted = [name for name in wanted if not _NOT_NEEDED.search(name)]
        with tempfile.TemporaryDirectory() as archives:
            run("apt-get", "-q", *self._options, "download", *wanted, cwd=Path(archives))
            for archive in Path(archives).glob("*.deb"):
                run("dpkg-deb", "-x", archive, root)


def _archives() -> list[str]:
    """Where apt takes Debian's packages from, as far as it has their lists."""
    said = run("apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages")
    return [line.split()[1] for line in said.splitlines() if line.startswith("Debian ")]


def neovim(packages: Packages, into: Path, patchelf: Path) -> Path:
    """Neovim 0.12."""
    root = into / "root"
    packages.unpack(root, "neovim")
    program = root / "usr/bin/nvim"
    # It starts itself again by its own path, so that its path must be that of the program.
    loader, libraries = root / "usr/lib64/ld-linux-x86-64.so.2", root / "usr/lib/x86_64-linux-gnu"
    run(patchelf, "--set-interpreter", loader, "--force-rpath", "--set-rpath", libraries, program)
    return _launcher(into / "bin/nvim", f'export VIMRUNTIME="{root}/usr/share/nvim/runtime"', f'"{program}"')


def emacs(packages: Packages, into: Path) -> Path:
    """Emacs 30 without windows, with lsp-mode 10 on its load path; ``emacsclient`` beside it."""
    root = into / "root"
    packages.unpack(root, "emacs-nox", "elpa-lsp-mode")
    ours = f'"{root}/usr/lib64/ld-linux-x86-64.so.2" --library-path "{root}/usr/lib/x86_64-linux-gnu"'
    (dump,) = root.glob("usr/libexec/emacs/*/*/*.pdmp")
    (data,) = root.glob("usr/share/emacs/*/etc")
    source = root / "usr/share/emacs/site-lisp/elpa-src"
    paths = ":".join(str(path) for path in (*sorted(source.iterdir()), data.with_name("lisp")))
    program = root / "usr/bin/emacs-nox"
    started = _launcher(
        into / "bin/emacs",
        f'export EMACSLOADPATH="{paths}" EMACSDATA="{data}" EMACSDOC="{data}" EMACSPATH="{dump.parent}"',
        f'{ours} --argv0 "{program}" "{program}" --dump-file="{dump}"',
    )
    _launcher(into / "bin/emacsclient", "", f'{ours} "{root}/usr/bin/emacsclient.emacs"')
    settings = (
        "(setq native-comp-jit-compilation nil native-comp-enable-subr-trampolines nil load-prefer-newer t)"
    )
    for patterns in _LISP:
        files = [path for pattern in patterns for path in source.glob(pattern)]
        run(started, "-Q", "--batch", "--eval", settings, "-f", "batch-byte-compile", *files)
    return started


def _launcher(path: Path, first: str, command: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n{first}\nexec {command} "$@"\n')
    path.chmod(0o755)
    return path


def machine_can() -> None:
    """Raise `NotHere` where the packages could not run."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise NotHere("only Linux on x86-64 is prepared for")
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise NotHere(f"there is no {program}")
