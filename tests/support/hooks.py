"""Hooks for tests: where they are written, and what they were told."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.home import Place
from tests.support.process import run

# The shape of a published hook: bash, the command taken out of the JSON, a pattern, exit code 2.
NO_PUSH = f"""\
#!/usr/bin/env bash
set -euo pipefail
input=$(cat)
command=$(printf '%s' "$input" | {shlex.quote(sys.executable)} -c 'import json, sys
print(json.load(sys.stdin)["tool_input"].get("command", ""))')
if printf '%s' "$command" | grep -qE '(^|[;&|[:space:]])git[[:space:]]+push'; then
  echo "BLOCKED: git push is not allowed" >&2
  exit 2
fi
exit 0
"""
# A formatter that runs on the file just edited; here it takes spaces off the ends of lines.
FORMAT = f"""\
#!/usr/bin/env bash
file=$({shlex.quote(sys.executable)} -c 'import json, sys
print(json.load(sys.stdin)["tool_input"]["file_path"])')
case "$file" in
  *.py) sed -i 's/[[:space:]]*$//' "$file"; echo "formatted $file" ;;
esac
"""
# What it prints when the user says something is context for the model.
CONTEXT = """\
#!/usr/bin/env bash
cat > /dev/null
echo "Current branch: main"
"""


def write_script(place: Place, name: str, text: str) -> str:
    """A hook's script in the user's home; gives back the command that runs it."""
    path = place.home / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def log_of(place: Place) -> Path:
    return place.home / "told"


def noting(place: Place, then: str = "") -> str:
    """A command that writes down what it is told, and then does something else."""
    return f"read -r told; printf '%s\\n' \"$told\" >> {shlex.quote(str(log_of(place)))}; {then or 'exit 0'}"


def hook_inputs(place: Place) -> list[dict[str, Any]]:
    """What such commands were told, in the order they were."""
    log = log_of(place)
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def saying(value: Mapping[str, Any]) -> str:
    """A command that answers with JSON."""
    return f"cat > /dev/null; printf '%s' {shlex.quote(json.dumps(value))}"


def entry(command: str, matcher: str | None = None, **more: Any) -> dict[str, Any]:
    """One entry of `hooks.json`, in the nested form."""
    handler = {"type": "command", "command": command, **more}
    return {**({} if matcher is None else {"matcher": matcher}), "hooks": [handler]}


def use_hooks(place: Place, **events: Sequence[Mapping[str, Any]]) -> None:
    """Write the user's `hooks.json`."""
    (place.codex_home / "hooks.json").write_text(json.dumps({"hooks": events}))


def use_project_hooks(place: Place, **events: Any) -> Path:
    """Write the `hooks.json` of the repository."""
    return place.write(".codex/hooks.json", json.dumps({"hooks": events}))


def listed_hooks(place: Place) -> list[tuple[str, str, bool]]:
    """What `hooks list` says: the event of each, its layer, and whether it is run."""
    ended = run(place, "hooks", "list", "--json")
    assert ended.status == 0
    return [(one["event"], one["layer"], one["trusted"]) for one in json.loads(ended.out)]
