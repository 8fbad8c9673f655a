"""Recognises destructive commands by their program and arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

_WHOLE: Final = frozenset(("/", "/*", "~", "~/", "~/*", ".", "..", "./", "../", "*", ".*", "$HOME"))
_WHOLE_WORKTREE: Final = frozenset((".", "./", "..", "../", "*", "./*", ":", ":/", ":/*", ":/.", ":(top)"))
_GIT_VALUES: Final = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"))
_DRY_CLEAN: Final = re.compile(r"--dry-run|-[dfiqxX]*n[dfiqxX]*")
_DISK_TOOLS: Final = frozenset(
    "mke2fs mkswap wipefs fdisk sfdisk gdisk parted blkdiscard lvremove vgremove pvremove".split()
)
_DELETERS: Final[Mapping[str, str]] = {
    "rimraf": "it deletes a whole directory tree",
    **dict.fromkeys(("shred", "srm"), "it overwrites files for good (`shred`)"),
}
_POWER: Final = frozenset("shutdown reboot halt poweroff telinit".split())
# The words in the order they come in, others between them or not.
_LOSING: Final[Mapping[str, tuple[str, ...]]] = {
    "aws": ("s3 rm", "s3 rb", "s3 sync --delete", "sqs purge-queue", "kms schedule-key-deletion"),
    "az": ("delete", "delete-batch", "purge"),
    "badblocks": ("-w",),
    "bq": ("rm",),
    "btrfs": ("subvolume delete",),
    "cdk": ("destroy",),
    "consul": ("kv delete",),
    "cryptsetup": ("luksFormat", "luksErase", "erase"),
    "django-admin": ("flush", "reset_db"),
    "diskutil": ("eraseDisk", "eraseVolume", "partitionDisk", "zeroDisk", "apfs deleteVolume", "apfs deleteContainer"),
    "docker": (
        "system prune",
        "system reset",
        "volume rm",
        "volume remove",
        "volume prune",
        "image prune",
        "container prune",
        "builder prune",
        "compose down -v",
        "compose down --volumes",
        "network prune",
        "buildx prune",
        "stack rm",
        "swarm leave --force",
    ),
    "docker-compose": ("down -v", "down --volumes"),
    "doctl": ("delete",),
    "dropdb": ("",),
    "dropuser": ("",),
    "eksctl": ("delete",),
    "etcdctl": ("del",),
    "firebase": ("firestore:delete", "database:remove", "hosting:disable"),
    "flyctl": ("destroy",),
    "gcloud": ("delete", "storage rm"),
    "gh": (
        *("repo delete", "release delete", "issue delete", "secret delete", "secret remove", "variable delete"),
        *("run delete", "gist delete", "cache delete", "codespace delete"),
        *("api -X DELETE", "api --method DELETE", "api -XDELETE", "api --method=DELETE", "api -X=DELETE"),
    ),
    "gsutil": ("rm", "rb", "rsync -d"),
    "hcloud": ("delete",),
    "helm": ("uninstall", "delete"),
    "hdparm": ("--security-erase", "--security-erase-enhanced"),
    "heroku": ("apps:destroy", "pg:reset", "addons:destroy"),
    "hg": ("purge", "strip", "update -C", "update --clean", "up -C", "revert --all", "revert -a"),
    "kubectl": ("delete", "drain", "replace --force"),
    "killall5": ("",),
    "linode-cli": ("delete",),
    "loginctl": ("poweroff", "reboot", "halt"),
    "lxc": ("delete",),
    "mc": ("rm", "rb"),
    "mdadm": ("--zero-superblock",),
    "mysqladmin": ("drop",),
    "netlify": ("sites:delete",),
    "nix-collect-garbage": ("-d", "--delete-old"),
    "npm": ("unpublish",),
    "nvme": ("format", "sanitize"),
    "oci": ("delete",),
    "php": ("artisan migrate:fresh", "artisan migrate:reset", "artisan db:wipe"),
    "prisma": ("migrate reset", "--force-reset"),
    "pulumi": ("destroy", "stack rm", "up --yes", "up -y"),
    "python": ("manage.py flush", "manage.py reset_db"),
    "rails": ("db:drop", "db:reset"),
    "rake": ("db:drop", "db:reset"),
    "rclone": ("delete", "purge", "sync"),
    "redis-cli": ("flushall", "flushdb", "FLUSHALL", "FLUSHDB", "FlushAll", "FlushDB"),
    "s3cmd": ("del", "rm", "rb"),
    "sam": ("delete",),
    "serverless": ("remove",),
    "sgdisk": ("--zap-all", "-Z", "--clear", "-o"),
    "supabase": ("db reset",),
    "svn": ("revert -R", "revert --recursive", "cleanup --remove-unversioned"),
    "terraform": (
        *("destroy", "apply -destroy", "apply --destroy", "apply -auto-approve", "apply --auto-approve"),
        *("state rm", "workspace delete"),
    ),
    "tmutil": ("delete", "deletelocalsnapshots"),
    "trash-empty": ("",),
    "userdel": ("",),
    "vagrant": ("destroy",),
    "vault": ("delete", "kv delete", "kv destroy"),
    "vercel": ("remove", "rm"),
    "virsh": ("undefine", "vol-delete"),
    "wrangler": ("delete",),
    "zfs": ("destroy", "rollback -r"),
    "zpool": ("destroy",),
}
_SAME: Final[Mapping[str, str]] = {
    "deluser": "userdel",
    "fly": "flyctl",
    "incus": "lxc",
    "nerdctl": "docker",
    "oc": "kubectl",
    "podman": "docker",
    "python3": "python",
    "sls": "serverless",
    "tofu": "terraform",
    "valkey-cli": "redis-cli",
}
_LOCAL: Final = frozenset(("chmod", "chown", "rimraf", "rm", "truncate"))
_DATABASES: Final = frozenset("psql mysql mariadb sqlite3 sqlcmd clickhouse-client cqlsh mongo mongosh".split())
_LOSING_QUERY: Final = re.compile(
    r"\bdrop\s+(?:database|schema|table|keyspace|user|role)\b|\btruncate\s+\w|\bdropDatabase\s*\("
    r"|\balter\s+table\s+\S+\s+drop\b|\bdrop\s+owned\b|\.(?:drop|deleteMany|remove)\(\s*(?:\{\s*\})?\s*\)"
    r"|\bdelete\s+from\s+[^\s;]+\s*(?:;|\Z)",
    re.IGNORECASE,
)

FORCED_RM: Final = "it deletes without asking (`rm -f`)"
TO_DISK: Final = "it writes to a device or a disk"


def destroys(name: str, arguments: list[str]) -> str | None:
    """Why a command is dangerous, as a clause that begins with `it`; None when nothing is known against it.

    `name` is the program's, without its directory. Words that are not known before it runs are empty.
    """
    check = _CHECKED.get(name)
    if check is not None and (reason := check(arguments)):
        return reason
    if name in _DELETERS and arguments:
        return _DELETERS[name]
    if name.startswith(("mkfs", "newfs")) or name in _DISK_TOOLS:
        return TO_DISK
    if name in _POWER or (name == "init" and not {"0", "6"}.isdisjoint(arguments)):
        return "it shuts the machine down"
    if name in _DATABASES and any(_LOSING_QUERY.search(word) for word in arguments):
        return f"it deletes from a database (`{name}`)"
    return _losing(name, arguments)


def is_judged(name: str) -> bool:
    """Whether its words say what a program destroys; of the others only the name does."""
    return name in _CHECKED or name in _DELETERS or name in _DATABASES or _SAME.get(name, name) in _LOSING


def reads_statements(name: str) -> bool:
    """Whether a program takes statements for a database from its input."""
    return name in _DATABASES or _SAME.get(name, name) == "redis-cli"


def stays_inside(name: str, arguments: Sequence[str]) -> bool:
    """Whether a deletion, or a change of rights, names only what lies below the working directory, or is not known.

    A script of a project that clears its own `build` directory is no accident.
    """
    names = [word for word in arguments if word and not word.startswith("-")]
    return name in _LOCAL and not any(word in _WHOLE or word.startswith(("/", "~", "../")) for word in names)


def _losing(name: str, arguments: Sequence[str]) -> str | None:
    if name == "aws" and any(word.startswith(("delete-", "terminate-")) for word in arguments):
        return "it deletes what no undo brings back (`aws`)"
    for words in _LOSING.get(_SAME.get(name, name), ()):
        rest = iter(arguments)
        if all(word in rest for word in words.split()):
            return f"it deletes what no undo brings back (`{' '.join((name, *words.split()))}`)"
    return None


def _has(arguments: list[str], letter: str, long: str, *, least: int = 4) -> bool:
    """Whether an option is among the arguments: in a bundle of short ones, or as a long one, maybe cut short."""
    for word in arguments:
        if word == "--":
            return False
        if word.startswith("--"):
            if len(word) >= least and long.startswith(word):
                return True
        elif letter and word.startswith("-") and letter in word:
            return True
    return False


def _rm(arguments: list[str]) -> str | None:
    if _has(arguments, "f", "--force", least=3):
        return FORCED_RM
    recursive = _has(arguments, "r", "--recursive", least=3) or _has(arguments, "R", "", least=99)
    return "it deletes a whole directory tree" if recursive and not _WHOLE.isdisjoint(arguments) else None


def _recursive_mode(arguments: list[str]) -> str | None:
    return "it changes rights or owners of whole directory trees" if _has(arguments, "R", "--recursive") else None


def _dd(arguments: list[str]) -> str | None:
    written = any(not word or (word.startswith("of=") and word != "of=/dev/null") for word in arguments)
    return "it overwrites a file or a disk (`dd`)" if written else None


def _kill(arguments: list[str]) -> str | None:
    return "it kills every process" if "-1" in arguments[1:] or arguments == ["--", "-1"] else None


def _crontab(arguments: list[str]) -> str | None:
    return "it deletes the table of timed jobs" if _has(arguments, "r", "") else None


def _systemctl(arguments: list[str]) -> str | None:
    return "it shuts the machine down" if not {"poweroff", "reboot", "halt", "kexec"}.isdisjoint(arguments) else None


def _truncate(arguments: list[str]) -> str | None:
    shrinks = any(size.startswith(("-", "<", "/")) or not size.strip("0") for size in _sizes(arguments))
    return "it cuts files short (`truncate`)" if shrinks else None


def _sizes(arguments: list[str]) -> list[str]:
    """The values of `-s` and `--size`, attached or as the next word."""
    found: list[str] = []
    for word, after in zip(arguments, [*arguments[1:], ""], strict=False):
        if word in ("-s", "--size"):
            found.append(after)
        elif word.startswith("--size="):
            found.append(word.removeprefix("--size="))
        elif word.startswith("-s"):
            found.append(word.removeprefix("-s"))
    return found


def _rsync(arguments: list[str]) -> str | None:
    if _has(arguments, "n", "--dry-run"):
        return None
    deletes = any(word.startswith("--del") or word == "--remove-source-files" for word in arguments)
    return "it deletes files on one side (`rsync --delete`)" if deletes else None


def _git(arguments: list[str]) -> str | None:
    unforced = any(word.lower() == "clean.requireforce=false" for word in arguments)
    while arguments and arguments[0].startswith("-"):
        arguments = arguments[2 if arguments[0] in _GIT_VALUES else 1 :]
    if not arguments:
        return None
    command, rest = arguments[0], arguments[1:]
    rest = [*(["-f"] if unforced and command == "clean" else []), *rest]
    lost = _throws_away(command, rest) or _throws_away_history(command, rest)
    return f"it throws work away (`git {command}`)" if lost else None


def _throws_away(command: str, rest: list[str]) -> bool:
    """Whether a git command loses what is not committed."""
    forced = _has(rest, "f", "--force")
    match command:
        case "checkout":
            return forced or not _WHOLE_WORKTREE.isdisjoint(rest)
        case "restore":
            only_index = _has(rest, "S", "--staged") and not _has(rest, "W", "--worktree")
            return not only_index and not _WHOLE_WORKTREE.isdisjoint(rest)
        case "clean":
            return forced and not any(_DRY_CLEAN.fullmatch(word) for word in rest)
        case "checkout-index" | "rm":
            return forced
        case "read-tree":
            return _has(rest, "", "--reset")
        case "reset":
            return _has(rest, "", "--hard") or _has(rest, "", "--merge")
        case "stash":
            return rest[:1] in (["drop"], ["clear"])
        case "submodule":
            return rest[:1] == ["deinit"] and forced
        case "switch":
            return forced or _has(rest, "", "--discard-changes")
        case "worktree":
            return rest[:1] == ["remove"] and forced
        case _:
            return False


def _throws_away_history(command: str, rest: list[str]) -> bool:
    """Whether a git command loses what is committed, here or on the other side."""
    forced = _has(rest, "f", "--force")
    match command:
        case "branch":
            return _has(rest, "D", "") or (forced and _has(rest, "d", "--delete"))
        case "filter-branch" | "filter-repo":
            return True
        case "gc":
            return any(word in ("--prune=now", "--prune=all") for word in rest)
        case "prune":
            return not _has(rest, "n", "--dry-run")
        case "push":
            options = ("--mirror", "--prune", "--force-with-lease")
            deletes = _has(rest, "d", "--delete") or any(_has(rest, "", option, least=7) for option in options)
            aimed = any(word.startswith(("+", ":")) for word in rest)
            return (forced or deletes or aimed) and not _has(rest, "n", "--dry-run")
        case "reflog":
            return rest[:1] in (["delete"], ["expire"])
        case "update-ref":
            return _has(rest, "d", "")
        case _:
            return False


_CHECKED: Final[Mapping[str, Callable[[list[str]], str | None]]] = {
    "chattr": _recursive_mode,
    "chgrp": _recursive_mode,
    "chmod": _recursive_mode,
    "chown": _recursive_mode,
    "crontab": _crontab,
    "dd": _dd,
    "git": _git,
    "kill": _kill,
    "rm": _rm,
    "rsync": _rsync,
    "setfacl": _recursive_mode,
    "systemctl": _systemctl,
    "truncate": _truncate,
}
