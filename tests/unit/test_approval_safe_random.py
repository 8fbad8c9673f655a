"""Scripts made at random of what the safe list knows and of what it must not let through: those it calls safe are run,
in a world where every other program only notes that it was started."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from codex_py.process.env import find_executable
from codex_py.programs import ProbeResults, bundled_ripgrep
from codex_py.sandbox.linux import find_bwrap
from codex_py.shell.known_safe import is_known_safe
from codex_py.shell.reading import read_command_line

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")

SCRIPTS: Final = 6000
OPERANDS: Final = (
    *("a.txt", "b.txt", "src", ".", "-", "--", "''", "src/trap", "'a;touch made'", "'$(touch made)'", "made", "./trap"),
    *(
        "-i",
        "--pre=trap",
        "'| touch made'",
        "'w made'",
        "'1w made'",
        "1,2p",
        "foo",
        "'*'",
        "trap",
        "/bin/sh",
        "-x",
        "2",
    ),
)
# Program by program: options that are known, and those that write or start something, in every spelling.
OPTIONS: Final = {
    "cat": ("-n", "-A", "--show-all", "--output=made"),
    "cut": ("-c1", "-d:", "-f1", "--output-delimiter=x", "-o", "--out=made"),
    "grep": ("-rn", "-E", "-f", "--include=x", "-o", "--color=always", "-P", "-z", "--devices=read"),
    "head": ("-n", "-c1", "-q", "--lines=1"),
    "tail": ("-n", "-c1", "-q", "--lines=1"),
    "id": ("-u", "-Z"),
    "ls": ("-la", "--color=always", "-R", "--hyperlink", "--dired"),
    "nl": ("-ba", "-s"),
    "numfmt": ("--to=si", "--field=1"),
    "paste": ("-s", "-d"),
    "rev": ("-V",),
    "seq": ("1", "3", "-s,", "-f"),
    "stat": ("-c", "%n", "-f", "--printf=%n"),
    "tr": ("-d", "-s", "a", "b"),
    "uname": ("-a",),
    "wc": ("-l", "--files0-from=a.txt", "--files0-from=-"),
    "echo": ("-n", "-e", "'\\x41'"),
    "expr": ("1", "+", ":"),
    "base64": ("-d", "-w0", "-w", "-o", "-omade", "--output=made", "--decode", "--wrap=5", "-i", "-D"),
    "uniq": ("-c", "-d", "-f1", "--output=made", "--count", "-w5", "+1", "--group"),
    "tac": ("-b", "-r", "-s", "x", "--separator=x"),
    "sed": ("-n", "-i", "-e", "-f", "-s", "1p", "1,3p", "'1e touch made'", "'s/a/b/e'", "-n1p", "-ni", "--in-place"),
    "find": (
        *("-name", "-type", "f", "-exec", "touch", "made", "';'", "+", "-delete", "-fprint", "-fls", "-ok", "-execdir"),
        *("-fprintf", "-print0", "-printf", "%p", "-newermt", "2020-01-01", "-O3", "-maxdepth", "1", "-o", "!", "-ls"),
        *("-files0-from", "-regex", "-D", "-prune", "-quit"),
    ),
    "rg": (
        *("-n", "-z", "--pre", "--pre=trap", "--pre-glob", "--search-zip", "--hostname-bin", "--hostname-bin=trap"),
        *("-e", "-g", "--files", "-C1", "-nz", "-f", "--hyperlink-format=default", "--no-config", "--json", "-r", "x"),
        *("--sort=path", "-uu", "--hidden", "--null", "--debug", "--trace", "--engine=auto", "-M5", "--stats"),
    ),
}
UNSAFE: Final = (
    "touch made",
    "sh ./trap",
    "./trap",
    "tee made",
    "trap",
    "python x",
    "git status",
    "sort -o made",
    "env ls",
)
JOINTS: Final = (" && ", " || ", "; ", " | ", "|", " & ", " > ", "\n", " |& ", " < ")
# The driver reads one script a line, and runs each as a command of a session would be.
DRIVER: Final = """\
case=0
while IFS= read -r -d '' script; do
    case=$((case + 1))
    CASE=$case timeout -s KILL 20 bash -c "$script" </dev/null >/dev/null 2>&1
done
exit 0
"""
SHIM: Final = '#!/usr/bin/bash\necho "$CASE ${0##*/}" >> LOG\n'


def make_script(source: random.Random) -> str:
    parts: list[str] = []
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        name = source.choice(tuple(OPTIONS))
        words = [name]
        for _ in range(source.randrange(5)):
            words.append(source.choice(OPTIONS[name] if source.random() < 0.6 else OPERANDS))
        parts.append(source.choice(UNSAFE) if source.random() < 0.03 else " ".join(words))
    joint = source.choice(JOINTS[:5]) if source.random() < 0.9 else source.choice(JOINTS)
    script = joint.join(parts)
    if source.random() < 0.1 and "'" not in script:
        script = f"bash -c '{script}'"
    return script


def is_safe(script: str) -> bool:
    segments = read_command_line(script, "/work", {}).segments
    return segments is not None and all(is_known_safe(words) for words in segments)


def make_programs(directory: Path, log: Path) -> None:
    """A directory to stand for /usr/bin: the programs of the safe list, and a shim under every other name."""
    directory.mkdir()
    shim = directory / "shim"
    shim.write_text(SHIM.replace("LOG", str(log)))
    shim.chmod(0o755)
    path = f"/usr/local/bin:/usr/bin:/bin:{Path(bundled_ripgrep() or '/').parent}"
    for name in ("bash", "timeout", *OPTIONS):
        found = find_executable(name, path)
        if found is not None:
            shutil.copy(os.path.realpath(found), directory / name)
    others = {name for place in ("/usr/bin", "/bin") for name in os.listdir(place)}  # noqa: PTH208 - names are all it takes
    for name in sorted({*others, "trap", "touch", "sh", "tee"} - {"bash", "timeout", "shim", *OPTIONS}):
        (directory / name).symlink_to("shim")


def state(directory: Path) -> dict[str, tuple[bytes, int, int]]:
    found = {path: path.lstat() for path in sorted(directory.rglob("*"))}
    return {
        str(path): (path.read_bytes() if path.is_file() else b"", status.st_mtime_ns, status.st_mode)
        for path, status in found.items()
    }


def run_all(scripts: list[str], place: Path) -> list[str]:
    """Run the scripts; what was started that none of them may start."""
    log, work, programs = place / "log", place / "work", place / "programs"
    log.touch()
    make_programs(programs, log)
    bwrap, _ = find_bwrap(os.environ, (), ProbeResults())
    assert bwrap, "bubblewrap is missing: `scripts/setup dev` installs it"
    places = [
        directory
        for directory in ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin")
        if Path(directory).is_dir()
    ]
    binds = [
        word
        for directory in dict.fromkeys(map(os.path.realpath, places))
        for word in ("--ro-bind", str(programs), directory)
    ]
    keep = [word for path in (work, log) for word in ("--bind", str(path), str(path))]
    world = [bwrap, "--die-with-parent", "--unshare-pid", "--ro-bind", "/", "/", "--dev", "/dev", *binds, *keep]
    env = {"PATH": "/usr/bin", "HOME": str(work), "TMPDIR": str(work), "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [*world, "--proc", "/proc", "--chdir", str(work), "--", "/usr/bin/bash", "-c", DRIVER],
        input="".join(f"{script}\0" for script in scripts).encode(),
        env=env,
        check=True,
        timeout=100,
    )
    return [f"{name} by `{scripts[int(case) - 1]}`" for case, name in map(str.split, log.read_text().splitlines())]


def make_work(place: Path) -> Path:
    work = place / "work"
    (work / "src").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "-i", "--pre=trap", "src/trap", "trap", "src/c.gz", "foo"):
        (work / name).write_text("foo\n1w made\n1e touch made\ntouch made\n")
        (work / name).chmod(0o755)
    return work


def test_nothing_that_is_called_safe_writes_or_starts_something_else(tmp_path: Path) -> None:
    source = random.Random(4)
    scripts = sorted({make_script(source) for _ in range(SCRIPTS)})
    safe = [script for script in scripts if is_safe(script)]
    assert len(safe) > 500
    assert len(scripts) - len(safe) > 1000
    work = make_work(tmp_path)
    before = state(work)
    assert run_all(source.sample(safe, 180), tmp_path) == []
    assert state(work) == before


def test_the_trap_springs(tmp_path: Path) -> None:
    """What the same world shows of scripts that are not safe: the test above would notice."""
    work = make_work(tmp_path)
    before = state(work)
    scripts = [
        "rg --pre trap foo",
        "find . -exec touch made ';'",
        "sed -n '1e touch made' a.txt",
        "sort a.txt",
        "ls > made",
    ]
    assert not any(map(is_safe, scripts))
    started = run_all(scripts, tmp_path)
    assert {started_one.split(" by ")[0] for started_one in started} >= {"trap", "touch", "sh", "sort"}
    assert {name for name in state(work) if name not in before} == {str(work / "made")}
