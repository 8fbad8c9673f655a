"""What commands must not read unless a setting allows it: one table of well-known places for credentials."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.protocol.value import Value

_LOGINS: Final = "logins of"
_PASSWORDS: Final = "a password manager"
_BROWSER: Final = "cookies and passwords of a browser"


class DefaultDenial(Value):
    """A path below the home directory, what is in it, and the environment variable that moves it, if any: the path
    itself, or with `VARIABLE/name` the directory it is in."""

    path: str
    content: str
    variable: str = ""


DEFAULT_DENIALS: Final = (
    DefaultDenial("~/.ssh", "SSH keys"),
    DefaultDenial("~/.gnupg", "GnuPG keys", "GNUPGHOME"),
    DefaultDenial("~/.aws", "credentials of AWS"),
    DefaultDenial("~/.aws/credentials", "credentials of AWS", "AWS_SHARED_CREDENTIALS_FILE"),
    DefaultDenial("~/.azure", f"{_LOGINS} Azure", "AZURE_CONFIG_DIR"),
    DefaultDenial("~/.config/gcloud", f"{_LOGINS} Google Cloud", "CLOUDSDK_CONFIG"),
    DefaultDenial(
        "~/.config/gcloud/application_default_credentials.json",
        f"{_LOGINS} Google Cloud",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    DefaultDenial("~/.oci", f"{_LOGINS} Oracle Cloud"),
    DefaultDenial("~/.config/doctl", f"{_LOGINS} DigitalOcean"),
    DefaultDenial("~/.fly", f"{_LOGINS} Fly.io"),
    DefaultDenial("~/.config/netlify", f"{_LOGINS} Netlify"),
    DefaultDenial("~/.local/share/com.vercel.cli", f"{_LOGINS} Vercel"),
    DefaultDenial("~/.config/.wrangler", f"{_LOGINS} Cloudflare"),
    DefaultDenial("~/.wrangler", f"{_LOGINS} Cloudflare"),
    DefaultDenial("~/.databrickscfg", "tokens of Databricks", "DATABRICKS_CONFIG_FILE"),
    DefaultDenial("~/.config/stripe", "keys of Stripe"),
    DefaultDenial("~/.circleci/cli.yml", "a token of CircleCI"),
    DefaultDenial("~/.config/ngrok", "a token of ngrok"),
    DefaultDenial("~/.s3cfg", "keys of object storage"),
    DefaultDenial("~/.boto", "keys of object storage"),
    DefaultDenial("~/.kube", f"{_LOGINS} Kubernetes clusters"),
    DefaultDenial("~/.kube/config", f"{_LOGINS} Kubernetes clusters", "KUBECONFIG"),
    DefaultDenial("~/.docker/config.json", f"{_LOGINS} container registries", "DOCKER_CONFIG/config.json"),
    DefaultDenial("~/.config/containers/auth.json", f"{_LOGINS} container registries", "REGISTRY_AUTH_FILE"),
    DefaultDenial("~/.git-credentials", f"{_LOGINS} git servers"),
    DefaultDenial("~/.config/git/credentials", f"{_LOGINS} git servers"),
    DefaultDenial("~/.config/gh/hosts.yml", f"{_LOGINS} GitHub", "GH_CONFIG_DIR/hosts.yml"),
    DefaultDenial("~/.config/hub", f"{_LOGINS} GitHub"),
    DefaultDenial("~/.config/glab-cli", f"{_LOGINS} GitLab"),
    DefaultDenial("~/.netrc", "passwords by host", "NETRC"),
    DefaultDenial("~/.npmrc", "tokens of npm", "NPM_CONFIG_USERCONFIG"),
    DefaultDenial("~/.pypirc", "tokens of PyPI"),
    DefaultDenial("~/.cargo/credentials", "tokens of cargo"),
    DefaultDenial("~/.cargo/credentials.toml", "tokens of cargo", "CARGO_HOME/credentials.toml"),
    DefaultDenial("~/.gem/credentials", "tokens of RubyGems"),
    DefaultDenial("~/.m2/settings.xml", "passwords of Maven"),
    DefaultDenial("~/.m2/settings-security.xml", "passwords of Maven"),
    DefaultDenial("~/.composer/auth.json", "tokens of Composer"),
    DefaultDenial("~/.config/composer/auth.json", "tokens of Composer"),
    DefaultDenial("~/.config/pypoetry/auth.toml", "tokens of Poetry"),
    DefaultDenial("~/.nuget/NuGet/NuGet.Config", "tokens of NuGet"),
    DefaultDenial("~/.config/helm/registry/config.json", f"{_LOGINS} container registries"),
    DefaultDenial("~/.pulumi/credentials.json", "tokens of Pulumi"),
    DefaultDenial("~/.config/sops/age", "keys of sops"),
    DefaultDenial("~/.kaggle", "a token of Kaggle"),
    DefaultDenial("~/.terraform.d/credentials.tfrc.json", "tokens of Terraform"),
    DefaultDenial("~/.vault-token", "a token of Vault"),
    DefaultDenial("~/.cache/huggingface/token", "a token of Hugging Face", "HF_HOME/token"),
    DefaultDenial("~/.cache/huggingface/stored_tokens", "tokens of Hugging Face", "HF_HOME/stored_tokens"),
    DefaultDenial("~/.config/rclone/rclone.conf", "passwords of rclone", "RCLONE_CONFIG"),
    DefaultDenial("~/.pgpass", "passwords of PostgreSQL", "PGPASSFILE"),
    DefaultDenial("~/.my.cnf", "passwords of MySQL"),
    DefaultDenial("~/.mylogin.cnf", "passwords of MySQL"),
    DefaultDenial("~/.codex/auth.json", f"{_LOGINS} Codex CLI"),
    DefaultDenial("~/.codex/config.toml", "settings with secrets of other services"),
    DefaultDenial("~/.codex/sessions", "sessions of other projects"),
    DefaultDenial("~/.codex/archived_sessions", "sessions of other projects"),
    DefaultDenial("~/.codex/history.jsonl", "messages to other projects"),
    DefaultDenial("~/.claude/.credentials.json", f"{_LOGINS} Claude Code"),
    DefaultDenial("~/.claude.json", "settings with secrets of other services"),
    DefaultDenial("~/.config/github-copilot", f"{_LOGINS} GitHub Copilot"),
    DefaultDenial("~/.local/share/opencode/auth.json", f"{_LOGINS} opencode"),
    DefaultDenial("~/.gemini/oauth_creds.json", f"{_LOGINS} Gemini CLI"),
    DefaultDenial("~/.password-store", _PASSWORDS, "PASSWORD_STORE_DIR"),
    DefaultDenial("~/.local/share/keyrings", _PASSWORDS),
    DefaultDenial("~/.local/share/kwalletd", _PASSWORDS),
    DefaultDenial("~/.config/op", _PASSWORDS),
    DefaultDenial("~/.config/Bitwarden", _PASSWORDS),
    DefaultDenial("~/.config/Bitwarden CLI", _PASSWORDS),
    DefaultDenial("~/.mozilla", _BROWSER),
    DefaultDenial("~/.config/google-chrome", _BROWSER),
    DefaultDenial("~/.config/chromium", _BROWSER),
    DefaultDenial("~/.config/BraveSoftware", _BROWSER),
    DefaultDenial("~/.config/microsoft-edge", _BROWSER),
    DefaultDenial("~/Library/Keychains", _PASSWORDS),
    DefaultDenial("~/Library/Cookies", _BROWSER),
    DefaultDenial("~/Library/Application Support/Google/Chrome", _BROWSER),
    DefaultDenial("~/Library/Application Support/Firefox", _BROWSER),
)

# In CODEX_HOME: a name, or `*` and the end of one.
OWN_SECRETS: Final[Mapping[str, str]] = {
    "auth.json": "your login",
    "mcp-auth.json": f"{_LOGINS} MCP servers",
    "provider-keys.json": "keys of model providers",
    "config.toml": "settings with secrets of other services",
    "*.config.toml": "settings with secrets of other services",
    "trusted_hooks.json": "which hooks run",
    "history.jsonl": "messages to other projects",
    "sessions": "sessions of other projects",
    "archived_sessions": "sessions of other projects",
    "checkpoints": "files of other projects",
    "exec-runs": "answers and changes of other tasks",
    "moved": "repositories that commands made",
    "skills-usage.jsonl": "where skills were used",
    "skills-usage.1.jsonl": "where skills were used",
    "cache": "titles of sessions, tools of MCP servers",
    "log": "logs",
}
# These stay denied whatever `allow_read` says.
ALWAYS_DENIED: Final = ("auth.json", "mcp-auth.json", "provider-keys.json")


def default_denials(env: Mapping[str, str], allowed: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The paths of the table, where the environment puts them, and what is in each; without the `allowed` ones.

    A path is allowed by its own name or by that of a directory above it.
    """
    opened = [_absolute(path, env) for path in allowed]
    for denial in DEFAULT_DENIALS:
        for path in dict.fromkeys(_paths_of(denial, env)):
            if not any(is_at_or_below(path, opened_path) for opened_path in opened):
                yield path, denial.content


def own_secrets(home: Path, allowed: Sequence[str], env: Mapping[str, str]) -> tuple[Path, ...]:
    """The files and directories of `home`, our own, that no command reads."""
    opened = [_absolute(path, env) for path in allowed]
    return tuple(
        home / name
        for name in OWN_SECRETS
        if name in ALWAYS_DENIED or not any(is_at_or_below(str(home / name), opened_path) for opened_path in opened)
    )


def still_denied(
    allowed: Sequence[str], denied: Sequence[str], env: Mapping[str, str]
) -> Iterator[tuple[str, str, bool]]:
    """The `allowed` paths that are one of the `denied` or below one, with that one, and whether it is the same."""
    closed = [_absolute(path, env) for path in denied]
    for path in allowed:
        target = _absolute(path, env)
        holder = next((closed_path for closed_path in closed if is_at_or_below(target, closed_path)), None)
        if holder is not None:
            yield path, holder, holder == target


def is_at_or_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def _paths_of(denial: DefaultDenial, env: Mapping[str, str]) -> Iterator[str]:
    usual = _absolute(denial.path, env)
    yield usual
    config = env.get("XDG_CONFIG_HOME", "")
    if config.startswith("/") and denial.path.startswith("~/.config/"):
        yield os.path.normpath(config + denial.path.removeprefix("~/.config"))
    if denial.variable:
        name, _, inside = denial.variable.partition("/")
        # KUBECONFIG may name several files.
        for moved in env.get(name, "").split(os.pathsep):
            if moved.startswith("/"):
                yield os.path.normpath(f"{moved}/{inside}")


def _absolute(path: str, env: Mapping[str, str]) -> str:
    return os.path.normpath(expand_home(path, env))


def expand_home(path: str, env: Mapping[str, str]) -> str:
    """`~` as the user's home, `/` for a user without one; anything else stays as it is."""
    if path == "~" or path.startswith("~/"):
        home = env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - that is `~` where nobody knows it
        return ("" if home == "~" else home.rstrip("/")) + path[1:] or "/"
    return path
