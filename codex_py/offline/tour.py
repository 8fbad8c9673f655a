"""Saying what a repository is: from its README, its manifests and the names of its files."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from codex_py.offline.conversation import Conversation
from codex_py.offline.intent import Tour
from codex_py.offline.languages import count_languages, suffix_of_script
from codex_py.offline.listing import Listing, Place, find_place, list_files, suffix_of
from codex_py.offline.manifests import MANIFESTS, Manifest, read_manifests
from codex_py.offline.pattern import Pattern
from codex_py.offline.readme import Readme, read_readme
from codex_py.offline.result import Result
from codex_py.offline.script import Request, Script, look, look_at_all
from codex_py.offline.text import clip, count, listed, ticked

_README: Final = Pattern(r"(?:docs/|\.github/)?readme(?:\.(?:md|markdown|mdx|rst|txt|adoc|org))?", re.IGNORECASE)
# Files without a suffix that are looked into, for the interpreter their first line may name.
_MOST_BARE: Final = 200
_README_ORDER: Final = (".md", ".markdown", ".mdx", ".rst", "", ".txt", ".adoc", ".org")
_TEST_FOLDER: Final = Pattern(r"((?:[^/]+/)*?(?:tests?|specs?|__tests__))/", re.IGNORECASE)
_TEST_FILE: Final = Pattern(
    r"(?:^|/)(?:test_[^/]*\.py|[^/]*_test\.(?:py|go|cc|cpp|rb|exs|dart)|[^/]*_spec\.rb|[^/]*\.(?:test|spec)\.[cm]?[jt]sx?|"
    r"[^/]*Tests?\.(?:java|kt|cs|php|swift)|(?:tests?|__tests__)/[^/]*\.(?:rs|[cm]?[jt]sx?|sh|bats|t))$"
)
_ENTRY_FILE: Final = Pattern(
    r"(?:src/|cmd/[^/]+/|app/|lib/|bin/)?(?:[^/]+/)?(?:__main__|manage|main|lib|cli|app|server|index)"
    r"\.(?:py|go|rs|[cm]?js|tsx?|c|cc|cpp|java|kt|rb|php|swift|dart|zig)"
)


_TICKED: Final = Pattern(r"`([^`\n]{1,300})`")


class Evidence(NamedTuple):
    """What was read before the answer is written."""

    folder: str
    inside: str
    listing: Listing
    readme_file: str
    readme: Readme
    manifests: tuple[Manifest, ...]
    unreadable: bool = False


class _Texts(NamedTuple):
    """What the files say. `readme` is the name of one, or empty."""

    listing: Listing
    readme: str
    by_file: dict[str, str]


def tour(conversation: Conversation, wish: Tour) -> Script:
    """Look at the files, read what describes them, and report."""
    place = yield from find_place()
    root = place.top if place.top is not None and place.prefix and wish.whole else None
    listing = yield from list_files(place, root)
    if root is None and place.prefix and not _describes_itself(listing):
        root = place.top
        listing = yield from list_files(place, root)
    texts = yield from _read(listing)
    folder = yield from _folder_name(conversation, place, root)
    inside = place.prefix.rstrip("/") if root is not None else ""
    return describe(_evidence(folder, inside, texts))


def _describes_itself(listing: Listing) -> bool:
    return any("/" not in path and (_README.fullmatch(path) or path in MANIFESTS) for path in listing.paths)


def _folder_name(
    conversation: Conversation, place: Place, root: str | None
) -> Generator[tuple[Request, ...], tuple[Result, ...], str]:
    where = root or conversation.cwd or (place.top if not place.prefix else None)
    if where is None:
        where = (yield from look("pwd")).text.strip()
    return PurePosixPath(where).name or where


def _read(listing: Listing) -> Generator[tuple[Request, ...], tuple[Result, ...], _Texts]:
    readme = min((path for path in listing.paths if _README.fullmatch(path)), key=_readme_rank, default="")
    files = [*filter(None, [readme]), *(name for name in MANIFESTS if name in listing.paths)]
    bare = [path for path in listing.paths if not suffix_of(path) and not PurePosixPath(path).name.startswith(".")]
    commands = [f"head -c 24000 {shlex.quote(file)}" for file in files]
    if bare and listing.complete:
        names = " ".join(shlex.quote(path) for path in bare[:_MOST_BARE])
        commands.append(f"grep -m1 -nIHs -D skip '^#!' -- {names}")
    results = yield from look_at_all(commands, listing.root)
    by_file = {file: result.text for file, result in zip(files, results, strict=False) if result.ok}
    scripts = results[len(files)].lines if len(results) > len(files) else []
    return _Texts(with_scripts(listing, scripts), readme, by_file)


def with_scripts(listing: Listing, found: Sequence[str]) -> Listing:
    """The listing with the files counted as scripts whose first line says so: `path:1:#!interpreter`."""
    suffixes = Counter(listing.suffixes)
    for line in found:
        _, first, text = line.partition(":1:")
        if first and (suffix := suffix_of_script(text)):
            suffixes[suffix] += 1
            suffixes[""] -= 1
    return listing._replace(suffixes=+suffixes)


def _evidence(folder: str, inside: str, texts: _Texts) -> Evidence:
    manifests = {file: text for file, text in texts.by_file.items() if file != texts.readme}
    told = texts.by_file.get(texts.readme)
    readme = Readme("", "", ()) if told is None else read_readme(told)
    unreadable = bool(texts.readme) and told is None
    return Evidence(folder, inside, texts.listing, texts.readme, readme, tuple(read_manifests(manifests)), unreadable)


def _readme_rank(path: str) -> tuple[int, int]:
    return path.count("/"), _README_ORDER.index(PurePosixPath(path).suffix.lower())


def describe(evidence: Evidence) -> str:
    """The report, from what was read."""
    listing, readme, manifests = evidence.listing, evidence.readme, evidence.manifests
    name = next((manifest.name for manifest in manifests if manifest.name), "") or readme.title or evidence.folder
    if not listing.total:
        return f"`{evidence.folder}` is empty: there is no file in it to describe."
    lines = [_headline(evidence, name), ""]
    lines.append(f"- **Files:** {_file_count(listing)}")
    lines += _language_lines(listing)
    lines.append(f"- **Tests:** {_tests(listing)}")
    lines.append(f"- **Entry points:** {_entries(listing, manifests)}")
    lines.append(f"- **How to run:** {_how_to_run(evidence)}")
    if listing.tops:
        tops = [f"`{top}/` ({number})" for top, number in listing.tops.most_common()]
        lines.append(f"- **Folders:** {listed(tops, 8)}")
    if evidence.inside:
        lines.append(f"- You are in `{evidence.inside}/` of it.")
    return "\n".join(lines)


def _headline(evidence: Evidence, name: str) -> str:
    readme, described = evidence.readme, [m.description for m in evidence.manifests if m.description]
    first = f"**{name}**" if name == evidence.folder else f"**{name}** (folder `{evidence.folder}`)"
    if readme.paragraph and (readme.opens or not described):
        return f"{first}: {readme.paragraph}\n\n(from `{evidence.readme_file}`)"
    lack = "begins with how to use it" if readme.paragraph else "has no text to go by"
    lack = "cannot be read" if evidence.unreadable else lack
    why = f"`{evidence.readme_file}` {lack}" if evidence.readme_file else "There is no README"
    if described:
        source = next(m.file for m in evidence.manifests if m.description)
        return f"{first}: {described[0]}\n\n(from `{source}`; {why[0].lower() + why[1:]}.)"
    title = f", titled “{readme.title}”" if readme.title and readme.title != name else ""
    return f"{first}{title}. {why}, so what it is for can only be guessed from its files."


def _file_count(listing: Listing) -> str:
    if not listing.tracked:
        return f"{listing.total} (none tracked by git)"
    untracked = f", and {listing.untracked} untracked" if listing.untracked else ""
    return f"{listing.total} tracked by git{untracked}"


def _language_lines(listing: Listing) -> list[str]:
    languages, formats, rest = count_languages(listing.suffixes)
    named = [f"{language} ({count(number, 'file')})" for language, number in languages]
    others = [f"{kind} ({number})" for kind, number in formats] + ([f"other ({rest})"] if rest else [])
    lines = [f"- **Languages:** {listed(named, 8) if named else 'no source code in a language I know'}"]
    return [*lines, f"- **Other files:** {listed(others, 9)}"] if others else lines


def _tests(listing: Listing) -> str:
    files = [path for path in listing.paths if _TEST_FILE.search(path)]
    folders = list(dict.fromkeys(found[1] for path in listing.paths if (found := _TEST_FOLDER.match(path))))
    if not files and not folders:
        return "none found by name"
    where = [f"`{folder}/`" for folder in folders[:5]]
    outside = [path for path in files if not any(path.startswith(f"{folder}/") for folder in folders)]
    where += [ticked(path) for path in outside[: max(0, 5 - len(where))]]
    number = f" ({count(len(files), 'test file')})" if files and listing.complete else ""
    return f"{', '.join(where)}{number}"


def _entries(listing: Listing, manifests: tuple[Manifest, ...]) -> str:
    declared = [entry for manifest in manifests for entry in manifest.entries]
    # The manifests write `./index.js` for what the list has as `index.js`.
    named = {path.removeprefix("./") for entry in declared for path in _TICKED.findall(entry)}
    found = [
        path
        for path in listing.paths
        if path not in named and _ENTRY_FILE.fullmatch(path) and not _TEST_FOLDER.match(path)
    ]
    scripts = [path for path in listing.paths if re.fullmatch(r"(?:scripts|bin)/[\w-]+", path)]
    entries = [
        *declared,
        *(ticked(path) for path in sorted(found, key=lambda path: path.count("/"))),
        *map(ticked, scripts),
    ]
    return listed(entries, 8) if entries else "none found by name"


def _how_to_run(evidence: Evidence) -> str:
    told: list[str] = []
    if evidence.readme.commands:
        told.append(f"{', '.join(map(ticked, evidence.readme.commands))} (from `{evidence.readme_file}`)")
    known: set[str] = set()
    for manifest in evidence.manifests:
        new = [command for command in manifest.run if command not in known]
        known.update(new)
        told += [f"{', '.join(map(ticked, new))} (from `{manifest.file}`)"] if new else []
    if not told and (script := _lone_script(evidence.listing)):
        told.append(f"probably {ticked(script)}")
    return "; ".join(told[:4]) if told else "neither a README nor a manifest says how"


def _lone_script(listing: Listing) -> str:
    runners = {
        ".py": "python3",
        ".js": "node",
        ".mjs": "node",
        ".sh": "sh",
        ".rb": "ruby",
        ".php": "php",
        ".pl": "perl",
    }
    known = [path for path in listing.paths if "/" not in path and PurePosixPath(path).suffix in runners]
    telling = [path for path in known if _ENTRY_FILE.fullmatch(path)] or (known if len(known) == 1 else [])
    return f"{runners[PurePosixPath(telling[0]).suffix]} {clip(shlex.quote(telling[0]), 100)}" if telling else ""
