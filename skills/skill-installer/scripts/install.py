#!/usr/bin/env python3
"""Show what skills a git repository or a directory brings, and copy chosen ones. Runs nothing of what it finds.

Usage: install.py inspect SOURCE [--ref REF] [--skill NAME]
       install.py install SOURCE --skill NAME … [--ref REF] [--project | --to DIRECTORY] [--replace [--discard-changes]]
       install.py installed
Exit status: 0 done, 1 it could not be done, 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

RECORD = ".installed-from.json"
MAX_FILES = 1000
MAX_BYTES = 50_000_000
MAX_READ = 1_000_000
MAX_DIRECTORYS = 20_000
MAX_DEPTH = 8
# Of a repository: what it lists, what is downloaded of it, and what all its skills together may unpack to.
MAX_LISTED = 200_000
MAX_DOWNLOAD = 100_000_000
MAX_UNPACKED = 4 * MAX_BYTES
CLONE_SECONDS = 300
SKIPPED = {".git", ".hg", ".svn", "node_modules", "__pycache__"}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
GITHUB_TREE = re.compile(r"(https://[^/]+/[^/]+/[^/]+)/(?:-/)?tree/([^/]+)(?:/(.*))?")
REMOTE = re.compile(r"(https|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")
SIGNS = (
    ("downloads and runs", r"(curl|wget)\b[^\n|]*\|\s*(sudo\s+)?(ba|z)?sh\b"),
    ("downloads and runs", r"(eval|exec)[\s(]+[^\n]{0,40}(curl|requests|urlopen)"),
    ("encoded payload", r"base64\s+(-d|--decode)|b64decode|atob\(|[A-Za-z0-9+/]{400,}"),
    ("raises its rights", r"\bsudo\b|danger-full-access|--dangerously|bypass[-_ ]approvals|without (the )?sandbox"),
    ("deletes", r"\brm\s+-[a-z]*r[a-z]*f|\brm\s+-[a-z]*f[a-z]*r|shutil\.rmtree|\bmkfs\b|\bdd\s+if="),
    ("reads secrets", r"~/\.(ssh|aws|gnupg|netrc|kube)|id_rsa|auth\.json|(^|[\s\"'/])\.env\b|printenv"),
    ("speaks to the agent", r"(?i)(ignore|disregard|forget)\s+(all\s+|any\s+)?(previous|prior|earlier|above)"),
    ("speaks to the agent", r"(?i)do not (tell|inform|mention)[^\n]{0,20}\buser|without (asking|telling) the user"),
    ("changes start-up files", r"\.(ba|z)shrc|\.profile\b|crontab|LaunchAgents|systemctl\s+enable"),
    ("changes settings", r"git\s+config\s+--global|npm\s+config\s+set|\.codex/config\.toml"),
    ("invisible characters", "[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\U000e0000-\U000e007f]"),
)
HOST = re.compile(r"https?://([\w.-]+\.[a-z]{2,})", re.IGNORECASE)


class Refused(Exception):
    """Why something is not done, in one line."""


class Source(NamedTuple):
    """Files at hand; `commit` and `address` tell where they came from.

    `problems` are skills that were not unpacked, by their directory, and why.
    """

    root: Path
    address: str
    commit: str
    problems: dict[str, str]


class Listed(NamedTuple):
    """A file as a commit lists it."""

    mode: str
    sha: str
    size: int
    path: str


class Found(NamedTuple):
    """One skill in a source."""

    name: str
    description: str
    directory: Path
    place: str
    problem: str = ""


def main() -> int:
    options = parse_arguments()
    try:
        if options.command == "installed":
            return list_installed()
        with opened(options.source, options.ref) as source:
            return inspect(source, options.skill) if options.command == "inspect" else install(source, options)
    except Refused as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.strerror or error}: {printable(str(error.filename or ''))}", file=sys.stderr)
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            # What a sandbox says of the directories that it protects.
            print(
                "hint: skill directories are protected. Ask to run it outside the sandbox; where nobody can be asked, "
                "use --to DIRECTORY, or let the user run `codex-py exec -s workspace-write --allow-skills`",
                file=sys.stderr,
            )
    return 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Show and install skills. Runs nothing of what it finds.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("installed", help="list the skills of this user and this repository")
    for name, text in (("inspect", "show what a source brings"), ("install", "copy chosen skills")):
        one = commands.add_parser(name, help=text)
        one.add_argument("source", help="a directory, a git URL, or https://github.com/OWNER/REPO/tree/BRANCH/path")
        one.add_argument("--ref", help="branch or tag")
        one.add_argument("--skill", action="append", metavar="NAME", required=name == "install", help="one of many")
        if name == "install":
            place = one.add_mutually_exclusive_group()
            place.add_argument("--project", action="store_true", help="into .agents/skills of this repository")
            place.add_argument("--to", metavar="DIRECTORY", help="into this directory (default: $CODEX_HOME/skills)")
            one.add_argument("--replace", action="store_true", help="exchange a skill that is there")
            one.add_argument("--discard-changes", action="store_true", help="even if it was changed by hand")
    return parser.parse_args()


@contextmanager
def opened(source: str, ref: str | None) -> Iterator[Source]:
    """The files of a source; a clone is gone afterwards."""
    if Path(source).is_dir():
        if ref:
            raise Refused("--ref is for git URLs: a directory is taken as it is")
        yield Source(Path(source), str(Path(source).resolve()), "", {})
        return
    tree = GITHUB_TREE.fullmatch(source)
    url, ref, below = (tree[1], ref or tree[2], tree[3] or "") if tree else (source, ref, "")
    if source.startswith("http://"):
        raise Refused("http:// can be changed on the way: use https://")
    if not REMOTE.fullmatch(url):
        raise Refused(f"neither a directory nor a git URL: {source}")
    if re.match(r"https://[^/]*@", url):
        raise Refused("the URL holds a password: leave it out, and let git's credential helper give it")
    if ref and not re.fullmatch(r"\w[\w./+-]{0,199}", ref):
        raise Refused(f"not a branch or tag: {ref}")
    with tempfile.TemporaryDirectory(prefix="skills-") as directory:
        clone = Path(directory, "clone")
        commit = fetch(url, ref, clone)
        root = Path(directory, "files")
        root.mkdir()
        below = below.strip("/")
        files = listed(clone, commit, below)
        if not files:
            raise Refused(f"no such directory in {url}: {below}")
        yield Source(root, source, commit, unpack(clone, files, root))


def fetch(url: str, ref: str | None, clone: Path) -> str:
    """Download without unpacking, and without running anything of the repository. The commit."""
    # A password in the URL would be seen by everyone who lists processes; git's own helpers are not asked either.
    env = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_ALLOW_PROTOCOL": "https:ssh:git:file",
    }
    git = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.symlinks=true"]
    branch = ["--branch", ref] if ref else []
    # Kept as the one file that was sent, and large contents never in memory: both are bounded by that file's limit.
    git += ["-c", "fetch.unpackLimit=1", "-c", "transfer.unpackLimit=1", "-c", "core.bigFileThreshold=1m"]
    how = ["--quiet", "--depth=1", "--no-checkout", "--no-recurse-submodules"]
    try:
        ended = subprocess.run(
            [*git, "clone", *how, *branch, "--", url, str(clone)],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CLONE_SECONDS,
            check=False,
            preexec_fn=limit_files,
        )
        if ended.returncode:
            reason = ended.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
            raise Refused(f"git cannot clone {url}: {reason}")
        told = subprocess.run([*git, "-C", str(clone), "rev-parse", "HEAD"], capture_output=True, env=env, check=True)
    except FileNotFoundError:
        raise Refused("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise Refused(f"git took longer than {CLONE_SECONDS} s to clone {url}") from None
    return told.stdout.decode().strip()


def limit_files() -> None:
    """In the process of git: no file may grow larger than what is downloaded at most."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    most = MAX_DOWNLOAD if hard == resource.RLIM_INFINITY else min(hard, MAX_DOWNLOAD)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def listed(clone: Path, commit: str, below: str) -> list[Listed]:
    """The files of a commit in a directory, with declared sizes; nothing is unpacked. Paths start at the directory."""
    tree = f"{commit}:{below}" if below else commit
    command = ["git", "-C", str(clone), "ls-tree", "-r", "-l", "-z", tree]
    found: list[Listed] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        rest = b""
        while chunk := process.stdout.read(65536):
            *records, rest = (rest + chunk).split(b"\0")
            for record in records:
                facts, _, path = record.partition(b"\t")
                mode, _, sha, size = facts.decode().split()
                found.append(Listed(mode, sha, int(size) if size.isdigit() else 0, os.fsdecode(path)))
            # Trees can hold each other, so that a small repository lists without end.
            if len(found) > MAX_LISTED or len(rest) > MAX_READ:
                process.kill()
                raise Refused(
                    f"the repository has more than {MAX_LISTED} files: give the directory of a skill as source"
                )
    return found


def unpack(clone: Path, files: list[Listed], root: Path) -> dict[str, str]:
    """Write the skills among the files, each counted before it is unpacked. Those left out, by directory, and why."""
    directories = {file.path.rpartition("/")[0] for file in files if file.path.rpartition("/")[2] == "SKILL.md"}
    problems: dict[str, str] = {}
    wanted: dict[str, Listed] = {}
    for directory in sorted(directories):
        inside = [file for file in files if not directory or file.path.startswith(f"{directory}/")]
        inside = [file for file in inside if SKIPPED.isdisjoint(file.path.split("/"))]
        problem = why_not(inside)
        if problem:
            problems[directory or "."] = problem
            inside = [file for file in inside if file.path == f"{directory}/SKILL.md".lstrip("/")]
            inside = [file for file in inside if file.size <= MAX_READ and not why_not([file])]
        wanted.update((file.path, file) for file in inside)
    if sum(file.size for file in wanted.values()) > MAX_UNPACKED:
        raise Refused(f"its skills unpack to more than {MAX_UNPACKED} bytes: give the directory of one as source")
    write_files(clone, list(wanted.values()), root)
    return problems


def why_not(files: list[Listed]) -> str:
    """Why files cannot be a skill, by what the commit says of them; "" when they can."""
    if len(files) > MAX_FILES or sum(file.size for file in files) > MAX_BYTES:
        return f"more than {MAX_FILES} files or {MAX_BYTES} bytes"
    for file in files:
        parts = file.path.split("/")
        if not file.path.isprintable():
            return f"a file name has characters that cannot be shown: {file.path}"
        if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
            return f"a path that leads elsewhere: {file.path}"
        if not file.mode.startswith("100"):
            return f"{file.path} is {'a link' if file.mode == '120000' else 'not a regular file'}"
    return clash([file.path for file in files])


def clash(paths: list[str]) -> str:
    """Why paths cannot lie side by side where letters of both cases are the same; "" when they can."""
    seen: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            place = "/".join(parts[:end])
            other = seen.setdefault(unicodedata.normalize("NFC", place).casefold(), place)
            if other != place:
                return f"{place} and {other} differ only in case"
    return ""


def write_files(clone: Path, files: list[Listed], root: Path) -> None:
    """Write what `git cat-file` gives, byte for byte: no filter of the repository is run."""
    command = ["git", "-C", str(clone), "cat-file", "--batch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        for file in files:
            process.stdin.write(f"{file.sha}\n".encode())
            process.stdin.flush()
            head = process.stdout.readline().split()
            if len(head) != 3 or int(head[2]) != file.size:
                process.kill()
                raise Refused(f"the repository is damaged: {file.path}")
            path = root / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(process.stdout.read(file.size))
            path.chmod(0o755 if file.mode == "100755" else 0o644)
            process.stdout.read(1)
        process.stdin.close()


def inspect(source: Source, names: list[str] | None) -> int:
    found, broken = skills_in(source)
    chosen = [one for one in found if not names or one.name in names]
    commit = f", commit {source.commit[:12]}" if source.commit else ""
    print(f"{printable(source.address)}{commit}: {len(found)} skills")
    for one in chosen:
        print()
        show(one, detailed=bool(names) or len(chosen) <= 5)
    for line in broken:
        print(f"\nnot a skill: {printable(line)}")
    missing = sorted(set(names or ()) - {one.name for one in found})
    if missing:
        raise Refused(f"no such skill: {', '.join(missing)}")
    if len(chosen) > 5 and not names:
        print("\nfor what one of them brings: --skill NAME")
    return 0


def skills_in(source: Source) -> tuple[list[Found], list[str]]:
    """The skills below a directory in path order, and what looks like one and is none. Follows no links."""
    root = source.root
    found: list[Found] = []
    broken: list[str] = []
    queue = [(root, 0)]
    for seen, (directory, depth) in enumerate(queue):
        if seen > MAX_DIRECTORYS:
            break
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        place = directory.relative_to(root).as_posix()
        if any(entry.name == "SKILL.md" for entry in entries):
            try:
                name, description = frontmatter(read(directory / "SKILL.md"))
                found.append(Found(name, description, directory, place, source.problems.get(place, "")))
            except Refused as error:
                broken.append(f"{place}: {error}")
        if depth < MAX_DEPTH:
            below = (entry for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED)
            queue.extend((Path(entry.path), depth + 1) for entry in below)
    return found, broken


def frontmatter(text: str) -> tuple[str, str]:
    """Name and description; enough of YAML for these two."""
    lines = text.split("\n")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
    if lines[0].strip() != "---" or not end:
        raise Refused("no frontmatter")
    values = {}
    for key in ("name", "description"):
        block = re.search(rf"(?m)^{key}[ \t]*:(.*(?:\n(?:[ \t].*|(?=\n)))*)", "\n".join(lines[1:end]))
        words = (block[1] if block else "").split()
        if words and re.fullmatch(r"[|>][+-]?\d?", words[0]):
            words = words[1:]
        value = " ".join(words)
        values[key] = value[1:-1] if value[:1] in ("'", '"') and value[-1:] == value[:1] else value
        if not values[key]:
            raise Refused(f"no `{key}` in the frontmatter")
    if not NAME.fullmatch(values["name"]):
        raise Refused(f"its name is not fit for a directory: {values['name'][:80]}")
    return values["name"], values["description"]


def read(path: Path) -> str:
    if not stat.S_ISREG(path.lstat().st_mode):
        raise Refused(f"{path.name} is not a regular file")
    with path.open("rb") as stream:
        return stream.read(MAX_READ).decode("utf-8", "replace")


def show(skill: Found, *, detailed: bool) -> None:
    print(f"{printable(skill.name)}  ({printable(skill.place)})")
    print(f"  {printable(skill.description)[:500]}")
    if not detailed:
        return
    try:
        files = files_of(skill)
    except Refused as error:
        print(f"  cannot be installed: {printable(str(error))}")
        return
    total = sum((skill.directory / name).stat().st_size for name in files)
    print(f"  {len(files)} files, {total} bytes")
    runnable = [name for name in files if name.startswith("scripts/") or is_runnable(skill.directory / name)]
    if runnable:
        print(f"  can be run: {printable(', '.join(runnable[:30]))}")
    binary = [name for name in files if b"\0" in head(skill.directory / name)]
    if binary:
        print(f"  not text: {printable(', '.join(binary[:20]))}")
    needs = declared_needs(skill.directory)
    if needs:
        print(f"  needs: {printable(', '.join(needs))}")
    show_signs(skill.directory, [name for name in files if name not in binary])


def show_signs(directory: Path, files: list[str]) -> None:
    hosts: set[str] = set()
    signs: list[str] = []
    for name in files:
        text = read(directory / name)
        hosts.update(host.lower() for host in HOST.findall(text))
        for number, line in enumerate(text.split("\n"), 1):
            sign = next((sign for sign, pattern in SIGNS if re.search(pattern, line[:5000])), None)
            if sign:
                signs.append(f"{name}:{number}: {sign}: {line.strip()[:100]}")
    if hosts:
        print(f"  addresses: {printable(', '.join(sorted(hosts)[:20]))}")
    if signs:
        print("  worth a look (found by pattern, may be harmless):")
        print("\n".join(f"    {printable(sign)}" for sign in signs[:25]))
        if len(signs) > 25:
            print(f"    … and {len(signs) - 25} more")


def declared_needs(directory: Path) -> list[str]:
    """The tools in agents/openai.yaml, read as lines: this is for people, not for a program."""
    path = directory / "agents" / "openai.yaml"
    if not path.is_file():
        return []
    pairs = re.findall(r"(?m)^\s*-?\s*(type|value)\s*:\s*[\"']?([^\"'\n#]+)", read(path))
    kinds = [value.strip() for key, value in pairs if key == "type"]
    values = [value.strip() for key, value in pairs if key == "value"]
    return [f"{kinds[at]} {values[at]}" for at in range(min(len(kinds), len(values)))]


def files_of(skill: Found) -> list[str]:
    """The files of a skill that was found, or why it cannot be installed."""
    if skill.problem:
        raise Refused(skill.problem)
    return checked_files(skill.directory)


def checked_files(directory: Path) -> list[str]:
    """The files of a skill, or why it cannot be installed: links, devices, too much, odd names."""
    names: list[str] = []
    total = 0
    for at, directories, files in os.walk(directory):
        directories[:] = sorted(name for name in directories if name not in SKIPPED)
        for name in [*directories, *files]:
            path = Path(at, name)
            place = path.relative_to(directory).as_posix()
            status = path.lstat()
            if not name.isprintable():
                raise Refused(f"a file name has characters that cannot be shown: {place}")
            if stat.S_ISDIR(status.st_mode) and not stat.S_ISLNK(status.st_mode):
                continue
            if not stat.S_ISREG(status.st_mode):
                kind = "a link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
                raise Refused(f"{place} is {kind}")
            if name != RECORD:
                names.append(place)
                total += status.st_size
            if len(names) > MAX_FILES or total > MAX_BYTES:
                raise Refused(f"more than {MAX_FILES} files or {MAX_BYTES} bytes")
    if reason := clash(names):
        raise Refused(reason)
    return sorted(names)


def is_runnable(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o111) or head(path).startswith((b"#!", b"\x7fELF", b"MZ"))


def head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(8192)


def install(source: Source, options: argparse.Namespace) -> int:
    found, _ = skills_in(source)
    place = destination(options)
    chosen = [pick(found, name) for name in dict.fromkeys(options.skill)]
    for skill in chosen:
        files_of(skill)
        may_write(place / skill.name, options)
    for skill in chosen:
        copy(skill, place / skill.name, source)
        print(f"installed {skill.name} in {printable(str(place / skill.name))}")
    print("nothing of it was run; it counts from the next message on")
    return 0


def pick(found: list[Found], name: str) -> Found:
    same = [one for one in found if one.name == name]
    if len(same) == 1:
        return same[0]
    if same:
        places = ", ".join(one.place for one in same)
        raise Refused(f"several skills are called {name}: give the directory of one as source ({places})")
    raise Refused(f"no such skill: {name}; there are: {', '.join(one.name for one in found[:40]) or 'none'}")


def destination(options: argparse.Namespace) -> Path:
    if options.to:
        return Path(options.to)
    return project_directory() / ".agents" / "skills" if options.project else user_directory()


def user_directory() -> Path:
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "skills"


def project_directory() -> Path:
    here = Path.cwd()
    return next((directory for directory in (here, *here.parents) if (directory / ".git").exists()), here)


def may_write(target: Path, options: argparse.Namespace) -> None:
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise Refused(f"something else is there: {target}")
    if not options.replace:
        raise Refused(f"it is installed already: {target}; --replace exchanges it")
    if state(target) != "unchanged" and not options.discard_changes:
        raise Refused(f"{target} is {state(target)}; --discard-changes gives that up")


def copy(skill: Found, target: Path, source: Source) -> None:
    """Copy beside the place, then move it there: it is never half there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{skill.name}-", dir=target.parent))
    old = draft.with_name(f"{draft.name}.old")
    try:
        for name in files_of(skill):
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(skill.directory / name, path, follow_symlinks=False)
            path.chmod(0o755 if is_runnable(skill.directory / name) else 0o644)
        record = {
            "source": source.address,
            "path": skill.place,
            "commit": source.commit or None,
            "installed_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "sha256": digest(draft),
        }
        (draft / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")
        draft.chmod(0o755)
        if target.exists():
            target.rename(old)
        try:
            draft.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def digest(directory: Path) -> str:
    total = hashlib.sha256()
    for name in checked_files(directory):
        content = (directory / name).read_bytes()
        total.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
        total.update(content)
    return total.hexdigest()


def list_installed() -> int:
    places = dict.fromkeys(
        [user_directory(), Path.home() / ".agents" / "skills", project_directory() / ".agents" / "skills"]
    )
    count = 0
    for place in places:
        for file in sorted(place.glob("*/SKILL.md")):
            directory = file.parent
            if directory.name.startswith("."):
                continue
            count += 1
            origin = record_of(directory).get("source") or "made here"
            print(f"{printable(directory.name)}  {printable(str(directory))}")
            print(f"  from {printable(str(origin))}; {state(directory)}")
    if not count:
        print("No skills are installed besides those that come with the program.")
    return 0


def record_of(directory: Path) -> dict:
    try:
        record = json.loads(read(directory / RECORD))
    except (OSError, ValueError, Refused):
        return {}
    return record if isinstance(record, dict) else {}


def state(directory: Path) -> str:
    known = record_of(directory).get("sha256")
    if not known:
        return "not installed by this script"
    try:
        return "unchanged" if digest(directory) == known else "changed by hand since"
    except (OSError, Refused):
        return "changed by hand since"


def printable(text: str) -> str:
    """A skill from elsewhere is other people's words: nothing in it may steer a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
