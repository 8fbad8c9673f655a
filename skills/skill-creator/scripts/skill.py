#!/usr/bin/env python3
"""Make a new skill directory, or check skills. Standard library only; runs nothing of what it checks.

Usage: skill.py new NAME --description TEXT [--user | --in DIRECTORY] [--with scripts,references,assets]
                    [--request TEXT [--request TEXT]] [--other TEXT]
       skill.py check [PATH …]
Exit status: 0 all is well, 1 something keeps a skill from working, 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import ast
import errno
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import NamedTuple

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MENTIONABLE = re.compile(r"[A-Za-z0-9_-]+")
VARIABLES = {"path", "home", "user", "shell", "pwd", "tmpdir", "temp", "tmp", "lang", "term", "xdg_config_home"}
SUBDIRECTORYS = ("scripts", "references", "assets")
MAX_NAME = 64
MAX_DESCRIPTION = 1024
LONG_DESCRIPTION = 400
SHORT_DESCRIPTION = 40
MAX_FRONTMATTER = 64 * 1024
MAX_BODY = 256 * 1024
MAX_READ = 1024 * 1024
LONG_BODY = 500
FIELD = re.compile(r"(?P<key>[A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(?P<value>.*)|[ \t]*)")
REFERENCE = re.compile(r"\]\((?!#|[a-zA-Z][a-zA-Z+.-]+:)([^()\s<>]+)\)|`((?:scripts|references|assets)/[\w./-]+)`")
CALLED = re.compile(r"(?<![\w./-])((?:scripts|references|assets)/[\w./-]*\w)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
UNFINISHED = re.compile(r"\b(TODO|FIXME|TBD)\b|\[\.\.\.\]|Replace this")
TEMPLATE = """\
---
name: {name}
description: {description}
---

# {title}

Replace this line with the goal: what a good result is, in a sentence.

## 1. Look

Replace this line with what to find out first, and where.

## 2. Do

Replace this line with the steps, in order, with commands that are ready to run.

## 3. Prove it

Replace this line with how to tell that it worked, and what to tell the user.
"""
METADATA = """\
interface:
  display_name: {title}
  short_description: {short}
  default_prompt: {prompt}
"""
# Prompts for `codex-py skills test`: named, asked for in the user's words, and left alone.


class Finding(NamedTuple):
    """An `error` keeps the skill from working; `advice` does not."""

    level: str
    path: Path
    message: str


class Unreadable(Exception):
    """Why a file is no skill."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Make a new skill, or check skills.")
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser("new", help="make the directory of a new skill")
    new.add_argument("name", help="lower-case letters, digits and hyphens")
    new.add_argument("--description", required=True, metavar="TEXT", help="what it does, and when to use it")
    place = new.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="for this user, in $CODEX_HOME/skills")
    place.add_argument(
        "--in", dest="directory", metavar="DIRECTORY", help="in this directory (default: the repository's)"
    )
    new.add_argument(
        "--with", dest="parts", default="", metavar="LIST", help=f"subdirectories: {','.join(SUBDIRECTORYS)}"
    )
    new.add_argument(
        "--request", dest="requests", action="append", default=[], metavar="TEXT",
        help="a request that should lead to it, for its evaluations; twice for two",
    )  # fmt: skip
    new.add_argument("--other", default="", metavar="TEXT", help="a similar request that should not lead to it")
    check = commands.add_parser("check", help="check skills, or directories of them")
    check.add_argument("paths", nargs="*", type=Path, help="default: the skills of this project and this user")
    options = parser.parse_args()
    try:
        return make(options) if options.command == "new" else check_all(options.paths)
    except Unreadable as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.strerror or error}: {error.filename or ''}", file=sys.stderr)
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            # What a sandbox says of the directories that it protects.
            print(
                "hint: skill directories are protected. Ask to run it outside the sandbox; where nobody can be asked, "
                "use --in DIRECTORY, or let the user run `codex-py exec -s workspace-write --allow-skills`",
                file=sys.stderr,
            )
        return 1


def make(options: argparse.Namespace) -> int:
    name, description = options.name, " ".join(options.description.split())
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise Unreadable(
            f"not a good name: {name!r}: lower-case letters, digits and single hyphens, at most {MAX_NAME}"
        )
    if name in VARIABLES:
        raise Unreadable(f"not a good name: ${name} is read as an environment variable")
    if not description or len(description) > MAX_DESCRIPTION or not description.isprintable():
        raise Unreadable(f"the description must have 1 to {MAX_DESCRIPTION} printable characters")
    parts = [part.strip() for part in options.parts.split(",") if part.strip()]
    if not set(parts) <= set(SUBDIRECTORYS):
        raise Unreadable(f"--with takes only {', '.join(SUBDIRECTORYS)}")
    directory = place_for(options) / name
    if os.path.lexists(directory):
        raise Unreadable(f"there is something already: {directory}")
    title = name.replace("-", " ").capitalize()
    write(directory / "SKILL.md", TEMPLATE.format(name=name, description=quoted(description), title=title))
    short = description if len(description) <= MAX_NAME else description[: MAX_NAME - 1].rstrip() + "…"
    prompt = quoted(f"Use ${name} to …")
    write(
        directory / "agents" / "openai.yaml", METADATA.format(title=quoted(title), short=quoted(short), prompt=prompt)
    )
    for part in parts:
        (directory / part).mkdir()
    write_evals(directory / "evals" / "evals.json", name, options.requests, options.other)
    print(f"made {directory}")
    print("next: replace the lines that say so, then check it")
    return 0


def write_evals(path: Path, name: str, requests: list[str], other: str) -> None:
    """Three evaluations: two requests that should lead to the skill, and one that should not."""
    first, second, *_ = [*requests, "", ""]
    prompts = (
        first or f"${name}",
        second or "Replace this line with a request that should lead to the skill, in the user's own words.",
        other or "Replace this line with a similar request that should not lead to the skill.",
    )
    evals: list[dict[str, object]] = [
        {"id": number, "prompt": " ".join(prompt.split()), "expected_output": "", "files": [], "assertions": []}
        for number, prompt in enumerate(prompts, start=1)
    ]
    evals[-1]["should_trigger"] = False
    write(path, json.dumps({"skill_name": name, "evals": evals}, indent=2, ensure_ascii=False) + "\n")


def place_for(options: argparse.Namespace) -> Path:
    if options.directory:
        return Path(options.directory)
    return user_directory() if options.user else project_directory(Path.cwd()) / ".agents" / "skills"


def user_directory() -> Path:
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "skills"


def project_directory(start: Path) -> Path:
    """The repository round a directory, or else the directory itself."""
    return next((directory for directory in (start, *start.parents) if (directory / ".git").exists()), start)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8", newline="\n") as out:
        out.write(text)


def quoted(text: str) -> str:
    """A value that YAML reads as this text, whatever is in it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def check_all(paths: list[Path]) -> int:
    files = [file for path in paths or usual_directories() for file in skill_files(path, given=bool(paths))]
    if not files:
        print("No skills to check: neither this project nor this user has any. Give the path of a skill.")
        return 0
    broken = 0
    for file in dict.fromkeys(files):
        findings = sorted(check_one(file), key=lambda one: one.level != "error")
        has_error = any(one.level == "error" for one in findings)
        broken += has_error
        print(f"{'FAIL' if has_error else 'ok  '}  {printable(str(file))}")
        for one in findings:
            where = "" if one.path == file else f"{printable(str(one.path))}: "
            print(f"      {one.level}: {where}{printable(one.message)}")
    print(f"{len(files)} checked, {broken} with errors")
    return 1 if broken else 0


def usual_directories() -> list[Path]:
    here = Path.cwd()
    top = project_directory(here)
    directories = [directory for directory in (here, *here.parents) if directory == top or top in directory.parents]
    places = [directory / name / "skills" for directory in directories for name in (".agents", ".codex")]
    return [place for place in [*places, user_directory(), Path.home() / ".agents" / "skills"] if place.is_dir()]


def skill_files(path: Path, *, given: bool) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise Unreadable(f"no such file or directory: {path}")
    own = [entry for entry in sorted(path.iterdir()) if entry.name.lower() == "skill.md"]
    found = own or [file for file in sorted(path.glob("*/SKILL.md")) if not file.parent.name.startswith(".")]
    if given and not found:
        raise Unreadable(f"no SKILL.md in {path}")
    return found


def check_one(path: Path) -> list[Finding]:
    found: list[Finding] = []
    if path.name != "SKILL.md":
        found.append(Finding("error", path, "the file must be called SKILL.md, in these letters"))
    try:
        text = read(path)
        fields, body = split(text)
        name, description = required(fields, "name"), required(fields, "description")
        if len(name) > MAX_NAME or not name.isprintable():
            raise Unreadable(f"the name must have at most {MAX_NAME} printable characters")
    except Unreadable as error:
        return [*found, Finding("error", path, str(error))]
    advice = [*about_name(name, path), *about_description(description), *about_body(path, body)]
    if path.stat().st_size > MAX_BODY:
        advice.append(f"longer than {MAX_BODY // 1024} KiB: the rest does not reach the model")
    found += [Finding("advice", path, message) for message in advice]
    return found + about_scripts(path.parent)


def read(path: Path) -> str:
    if not path.is_file():
        raise Unreadable("not a regular file")
    with path.open("rb") as stream:
        raw = stream.read(MAX_READ)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(raw) == MAX_READ and error.start > MAX_READ - 4:
            return raw[: error.start].decode("utf-8")
        raise Unreadable(f"not UTF-8 at byte {error.start}") from None


def split(text: str) -> tuple[dict[str, str], str]:
    """The top-level fields of the frontmatter, and what follows it."""
    lines = text.split("\n")
    if text.startswith("\ufeff"):
        raise Unreadable("the file begins with a byte order mark: save it without")
    if lines[0].strip() != "---":
        raise Unreadable("the first line must be ---")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        raise Unreadable("the frontmatter has no closing ---")
    if sum(len(line.encode()) + 1 for line in lines[:end]) > MAX_FRONTMATTER:
        raise Unreadable(f"the frontmatter is longer than {MAX_FRONTMATTER // 1024} KiB")
    return fields_of(lines[1:end]), "\n".join(lines[end + 1 :])


def fields_of(lines: list[str]) -> dict[str, str]:
    """Enough of YAML for the fields that count; nested ones are kept as text."""
    fields: dict[str, list[str]] = {}
    key = ""
    for number, raw in enumerate(lines, 2):
        line = raw.rstrip("\r")
        found = FIELD.fullmatch(line)
        if found:
            key = found["key"]
            if key in fields:
                raise Unreadable(f"line {number}: `{key}` is there twice")
            fields[key] = [found["value"] or ""]
        elif line[:1] == "\t":
            raise Unreadable(f"line {number}: indented with a tab: YAML wants spaces")
        elif key and (line[:1] in (" ", "-") or not line.strip()):
            fields[key].append(line)
        elif line.strip() and not line.startswith("#"):
            raise Unreadable(f"line {number}: neither `key: value` nor part of one: {line[:60]}")
    return {key: scalar(parts) for key, parts in fields.items()}


def scalar(parts: list[str]) -> str:
    first = parts[0].strip()
    if re.fullmatch(r"[|>][+-]?\d?[+-]?(\s+#.*)?", first):
        first = ""
    text = " ".join(" ".join([first, *parts[1:]]).split())
    if text[:1] in ("'", '"'):
        closed = re.match(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\']|\'\')*)\'', text)
        if not closed:
            raise Unreadable(f"a quote is not closed: {text[:60]}")
        return closed[1] if closed[1] is not None else closed[2].replace("''", "'")
    text = re.sub(r"(^|\s)#.*", "", text)
    return "" if text in ("~", "null") else text


def required(fields: dict[str, str], key: str) -> str:
    value = fields.get(key, "")
    if not value:
        raise Unreadable(f"missing field `{key}`")
    return value


def about_name(name: str, path: Path) -> list[str]:
    found: list[str] = []
    if not MENTIONABLE.fullmatch(name):
        found.append(f"`{name}` cannot be mentioned as ${name}: use letters, digits, - and _")
    elif name.lower() in VARIABLES:
        found.append(f"${name} is read as an environment variable: choose another name")
    elif name != name.lower():
        found.append("the name has capitals: a mention must have them too")
    directory = path.resolve().parent.name
    if name != directory:
        found.append(f"the name is not that of the directory, `{directory}`")
    return found


def about_description(text: str) -> list[str]:
    found: list[str] = []
    if len(text) > MAX_DESCRIPTION:
        found.append(f"the description has {len(text)} characters: {MAX_DESCRIPTION} are shown at most")
    elif len(text) > LONG_DESCRIPTION:
        found.append(f"the description has {len(text)} characters: with many skills only its beginning is shown")
    elif len(text) < SHORT_DESCRIPTION:
        found.append("the description is short: say what the skill does, and when to use it")
    if not re.search(r"\b(when|whenever|if|for|before|after|to|on)\b", text, re.IGNORECASE):
        found.append("the description does not say when to use the skill")
    if UNFINISHED.search(text):
        found.append("the description looks unfinished")
    return found


def about_body(path: Path, body: str) -> list[str]:
    found: list[str] = []
    if not body.strip():
        found.append("there is nothing below the frontmatter")
    if body.count("\n") > LONG_BODY:
        found.append(f"{body.count(chr(10))} lines: move what is not always needed into references/")
    unfinished = [number for number, line in enumerate(body.split("\n"), 1) if UNFINISHED.search(line)]
    if unfinished:
        found.append(f"{len(unfinished)} unfinished lines, the first being the {unfinished[0]}th below the frontmatter")
    named = {(one[1] or one[2]).split("#")[0].rstrip("/") for one in REFERENCE.finditer(FENCE.sub("", body))}
    called = {name for block in FENCE.finditer(body) for name in CALLED.findall(block[0])}
    for name in sorted(named | called):
        if name and not name.startswith(("/", "~")) and not (path.parent / name).exists():
            found.append(f"names `{name}`, which is not there")
    for file in sorted((path.parent / "references").glob("*.md")):
        if file.name not in body:
            found.append(f"does not name references/{file.name}: nobody will open it")
    return found


def about_scripts(directory: Path) -> list[Finding]:
    found: list[Finding] = []
    for script in sorted((directory / "scripts").rglob("*"))[:500]:
        if not script.is_file() or script.stat().st_size > MAX_READ:
            continue
        raw = script.read_bytes()
        if raw.startswith(b"#!") and not os.access(script, os.X_OK):
            found.append(Finding("advice", script, "begins with #! and is not executable: chmod +x it"))
        if script.suffix == ".py":
            try:
                ast.parse(raw, filename=str(script))
            except (SyntaxError, ValueError, RecursionError) as error:
                found.append(Finding("error", script, f"not valid Python: {error}"))
    return found


def printable(text: str) -> str:
    """A skill from elsewhere is other people's words: nothing in it may steer a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
