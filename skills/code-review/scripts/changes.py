#!/usr/bin/env python3
"""Say what there is to review: base, commits, files by weight, and added lines that often deserve a look.

Reads only, runs nothing but git. Usage: changes.py [--base REV] [--in DIRECTORY]
"""

from __future__ import annotations

import argparse
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

MAX_FILES = 60
MAX_SIGNS = 40
MAX_DIFF = 8_000_000
QUIET = ["-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "diff.external="]
# No program that the repository names may run.
PLAIN = ["--no-ext-diff", "--no-textconv", "--no-color"]
SIGNS = (
    ("conflict marker", r"^(<{7} |>{7} |={7}$)"),
    ("secret?", r"-----BEGIN [A-Z ]*PRIVATE KEY|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,}|\bsk-[\w-]{20,}"),
    ("secret?", r"(?i)\b(password|passwd|secret|api_?key|token)\b\s*[:=]\s*[\"'][^\"'\s${}<>]{8,}[\"']"),
    ("shell or eval", r"shell\s*=\s*True|\bos\.system\(|\beval\(|\bexec\(|child_process|dangerouslySetInnerHTML"),
    ("unsafe reading", r"\bpickle\.loads?\(|\byaml\.load\((?!.*Safe)|\bverify\s*=\s*False|InsecureSkipVerify"),
    ("swallowed error", r"except(\s+(Base)?Exception)?\s*:\s*(pass)?\s*$|catch\s*(\(\w*\))?\s*\{\s*\}"),
    ("skipped test", r"\b(it|test|describe)\.(skip|only)\(|\bxit\(|mark\.(skip|xfail)|@Ignore|#\[ignore|t\.Skip\("),
    ("left over", r"\bconsole\.log\(|\bdebugger\b|\bbreakpoint\(\)|pdb\.set_trace|\bdbg!\(|\b(TODO|FIXME|XXX)\b"),
)
TEST_FILE = re.compile(r"(^|/)(tests?|specs?|__tests__)/|(^|/)test_|[._](test|spec)\.\w+$|_test\.\w+$|Test\.\w+$")
NOISE = re.compile(r"(^|/)(vendor|third_party|node_modules|dist)/|[.-]lock(\.\w+)?$|\.lock$|\.min\.\w+$|\.snap$|\.svg$")
CODE = re.compile(r"\.(py|js|mjs|ts|tsx|jsx|rs|go|java|kt|rb|c|cc|cpp|h|hpp|cs|php|swift|scala|ex|sh|sql|vue|svelte)$")


class Change(NamedTuple):
    """One file; `added` and `removed` are None for one that is not text."""

    name: str
    added: int | None
    removed: int | None


def main() -> int:
    parser = argparse.ArgumentParser(description="Say what there is to review. Reads only.")
    parser.add_argument("--base", metavar="REV", help="compare with this commit, branch or tag")
    parser.add_argument(
        "--in", dest="directory", default=".", metavar="DIRECTORY", help="the repository (default: here)"
    )
    options = parser.parse_args()
    directory = Path(options.directory)
    if not directory.is_dir() or not git(directory, "rev-parse", "--git-dir"):
        print(f"Nothing to compare: {directory.resolve()} is not in a git repository.")
        return 0
    scope, arguments = choose(directory, options.base)
    if arguments is None:
        print(scope)
        return 0
    changes = numbers(directory, arguments)
    new = git(directory, "ls-files", "--others", "--exclude-standard").splitlines() if ".." not in arguments[0] else []
    if not changes and not new:
        print("Nothing to review: no uncommitted changes, and no commits that the base does not have.")
        return 0
    print(f"scope: {scope}")
    show_intent(directory, arguments)
    show_files(changes, new)
    show_signs(directory, arguments)
    print(f"\nthe change: {shlex.join(['git', 'diff', *arguments])}")
    if new:
        print("and the new files, which that does not show: read them whole")
    return 0


def choose(directory: Path, base: str | None) -> tuple[str, list[str] | None]:
    """In words what is reviewed, and the arguments of `git diff` for it; None when there is nothing."""
    if not git(directory, "rev-parse", "--verify", "--quiet", "HEAD"):
        return "Nothing to compare with: the repository has no commit yet. Review the files as they are.", None
    if base:
        commit = git(directory, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}").strip()
        if not commit:
            return f"No such commit: {printable(base)}", None
        return f"everything since {printable(base)}, uncommitted work included", [merge_base(directory, commit)]
    if git(directory, "status", "--porcelain"):
        return "uncommitted work (staged, unstaged and new files) against the last commit", ["HEAD"]
    for name in main_branches(directory):
        start = merge_base(directory, name)
        if start and start != git(directory, "rev-parse", "HEAD").strip():
            return f"the commits of this branch since it left {name}", [f"{start}..HEAD"]
    if git(directory, "rev-parse", "--verify", "--quiet", "HEAD~1"):
        return "the last commit, as nothing is uncommitted and this is the main branch", ["HEAD~1..HEAD"]
    return "Nothing to compare with: there is one commit, and nothing uncommitted.", None


def main_branches(directory: Path) -> list[str]:
    head = git(directory, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD").strip()
    names = [head, "origin/main", "origin/master", "main", "master", "develop", "trunk"]
    return [name for name in names if name and git(directory, "rev-parse", "--verify", "--quiet", name)]


def merge_base(directory: Path, name: str) -> str:
    return git(directory, "merge-base", "HEAD", name).strip() or name


def git(directory: Path, *arguments: str, limit: int = MAX_DIFF) -> str:
    try:
        command = ["git", "-C", str(directory), *QUIET, *arguments]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"error: cannot run git: {error}", file=sys.stderr)
        sys.exit(2)
    return ended.stdout[:limit].decode("utf-8", "replace") if ended.returncode == 0 else ""


def numbers(directory: Path, arguments: list[str]) -> list[Change]:
    changes: list[Change] = []
    for line in git(directory, "diff", *PLAIN, "--numstat", "--no-renames", *arguments).splitlines():
        added, removed, name = [*line.split("\t", 2), "", ""][:3]
        changes.append(Change(name, *(int(part) if part.isdigit() else None for part in (added, removed))))
    return sorted(changes, key=lambda one: (bool(NOISE.search(one.name)), -(one.added or 0) - (one.removed or 0)))


def show_intent(directory: Path, arguments: list[str]) -> None:
    span = arguments[0] if ".." in arguments[0] else f"{arguments[0]}..HEAD"
    commits = git(directory, "log", "-30", "--format=%h %s", span).splitlines()
    if commits:
        print("\ncommits:")
        print("\n".join(f"  {printable(line)}" for line in commits))


def show_files(changes: list[Change], new: list[str]) -> None:
    added, removed = sum(one.added or 0 for one in changes), sum(one.removed or 0 for one in changes)
    print(f"\nfiles ({len(changes)} changed, +{added} -{removed}; {len(new)} new and untracked):")
    for one in changes[:MAX_FILES]:
        size = "not text" if one.added is None else f"+{one.added} -{one.removed}"
        note = "  (lock, vendored or generated)" if NOISE.search(one.name) else ""
        print(f"  {printable(one.name)}  {size}{note}")
    for name in new[:MAX_FILES]:
        print(f"  {printable(name)}  new")
    left = max(0, len(changes) - MAX_FILES) + max(0, len(new) - MAX_FILES)
    if left:
        print(f"  … and {left} more")
    names = [one.name for one in changes] + new
    code = [name for name in names if CODE.search(name) and not TEST_FILE.search(name) and not NOISE.search(name)]
    if code and not any(TEST_FILE.search(name) for name in names):
        print("  note: code is changed, and no test")


def show_signs(directory: Path, arguments: list[str]) -> None:
    """Places, not verdicts: most are fine."""
    found: list[str] = []
    name, number = "", 0
    for line in git(directory, "diff", *PLAIN, "-U0", "--no-renames", *arguments).splitlines():
        if line.startswith("+++ "):
            name = line[6:]
        elif line.startswith("@@"):
            start = re.search(r"\+(\d+)", line)
            number = int(start[1]) if start else 0
        elif line.startswith("+") and name and not NOISE.search(name):
            text = line[1:2000]
            sign = next((sign for sign, pattern in SIGNS if re.search(pattern, text)), None)
            # What looks like a secret is not repeated.
            shown = "" if sign == "secret?" else f"  {printable(text.strip())[:100]}"
            if sign:
                found.append(f"  {printable(name)}:{number}: {sign}{shown}")
            number += 1
    if found:
        print("\nworth a look (found by pattern, most may be fine):")
        print("\n".join(found[:MAX_SIGNS]))
        if len(found) > MAX_SIGNS:
            print(f"  … and {len(found) - MAX_SIGNS} more")


def printable(text: str) -> str:
    """File names and commit messages are other people's words: nothing in them may steer a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)[:200]


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
