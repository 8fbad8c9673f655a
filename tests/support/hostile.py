"""A repository from an archive that names a program at every place where git takes one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.home import Place

_CONFIG = """
[core]
	fsmonitor = {run} fsmonitor
	hooksPath = hooks
	pager = {run} pager
	editor = {run} editor
	sshCommand = {run} ssh
	askPass = {run} askpass
	gitProxy = {run} proxy
	alternateRefsCommand = {run} alternates
[pager]
	diff = {run} pager
	log = {run} pager
	status = {run} pager
	branch = {run} pager
[diff]
	external = {run} external
	submodule = log
[diff "x"]
	textconv = {run} textconv
	command = {run} command
[filter "x"]
	clean = "{run} filter; cat"
	smudge = "{run} filter; cat"
	required = true
[filter "y"]
	process = {run} filter
[log]
	showSignature = true
[gpg]
	program = {gpg}
[gpg "ssh"]
	program = {gpg}
[alias]
	status = !{run} alias
	diff = !{run} alias
	log = !{run} alias
[credential]
	helper = !{run} credential
[status]
	submoduleSummary = true
[submodule]
	recurse = true
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[remote "origin"]
	url = ext::{run} promisor
	promisor = true
	partialclonefilter = blob:none
	uploadpack = {run} uploadpack
[include]
	path = more
[extensions]
	partialClone = origin
"""
_MORE = '[filter "z"]\n\tclean = "{run} filter; cat"\n'
_SUBMODULE = '[core]\n\tfsmonitor = {run} submodule\n[filter "x"]\n\tclean = "{run} submodule; cat"\n'


@dataclass(frozen=True)
class HostileRepository:
    """The repository; every program it names leaves a line in a file that commands may write."""

    repo: Path
    env: Mapping[str, str]
    canary: Path

    def ran(self) -> list[str]:
        """The programs that have run, as often as they did."""
        return self.canary.read_text().split() if self.canary.exists() else []


def hostile_repository(place: Place, *, is_partial: bool = False) -> HostileRepository:
    """Make the place's repository hostile; something in it has changed. A partial one lacks something of a commit."""
    repo, canary = place.repo, place.repo.parent / "canary"
    program = repo.parent / "leave-a-trace"
    program.write_text(f'#!/bin/sh\necho "$1" >> {canary}\n')
    program.chmod(0o755)
    # No shell reads this one.
    gpg = repo.parent / "gpg"
    gpg.write_text(f"#!/bin/sh\n{program} gpg\n")
    gpg.chmod(0o755)
    names = {"run": str(program), "gpg": str(gpg)}
    for name, filter_name in (("a", "x"), ("b", "y"), ("c", "z")):
        place.write(name, f"{filter_name}\n")
    place.write(".gitattributes", "a filter=x diff=x\nb filter=y diff=x\nc filter=z diff=x\n")
    sub = repo / "sub"
    _git(place, "init", "-q", str(sub))
    (sub / "file").write_text("x\n")
    (sub / ".gitattributes").write_text("* filter=x\n")
    _git(place, "-C", str(sub), "add", "-A")
    _git(place, "-C", str(sub), "-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "sub")
    _git(place, "add", "-A")
    _git(place, "commit", "-qm", "more")
    _sign(place)
    for text, path in ((_CONFIG, ".git/config"), (_SUBMODULE, "sub/.git/config"), (_MORE, ".git/more")):
        with (repo / path).open("a") as config:
            config.write(text.format_map(names))
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"):
        for hooks in (".git/hooks", "hooks"):
            place.write(f"{hooks}/{hook}", f"#!/bin/sh\n{program} hook\n").chmod(0o755)
    for name in ("a", "b", "c", "README.md", "new", "sub/file"):
        place.write(name, "changed\n")
    if is_partial:
        blob = _git(place, "-c", "core.fsmonitor=false", "rev-parse", "HEAD:c").strip()
        (repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    return HostileRepository(repo, place.env, canary)


def _sign(place: Place) -> None:
    """Give the newest commit something that looks like a signature, which is what has git start gpg."""
    text = _git(place, "cat-file", "commit", "HEAD")
    head, _, message = text.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        input=f"{head}\n{signature}\n\n{message}".encode(),
        cwd=place.repo,
        env=place.env,
        check=True,
        capture_output=True,
    )
    _git(place, "update-ref", "HEAD", made.stdout.decode().strip())


def _git(place: Place, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=place.repo, env=dict(place.env), check=True, capture_output=True)
    return done.stdout.decode()


class PlantedPrograms:
    """Programs in a directory that comes first on `PATH`; each leaves a line in a file when it is started."""

    def __init__(self, place: Place, directory: Path, names: Iterable[str]) -> None:
        self.canary = place.repo.parent / "canary"
        directory.mkdir(parents=True, exist_ok=True)
        for name in names:
            # Nothing is looked up on `PATH` here.
            program = directory / name
            program.write_text(f"#!/bin/sh\necho {name} >> {self.canary}\n")
            program.chmod(0o755)
        self.place = place.with_env(PATH=f"{directory}:{place.env['PATH']}")

    def ran(self) -> list[str]:
        """The programs that have run, as often as they did."""
        return self.canary.read_text().split() if self.canary.exists() else []
