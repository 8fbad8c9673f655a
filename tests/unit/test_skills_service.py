"""The catalogue of a session: what it holds, and when it is read again."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from codex_py.skills import record
from codex_py.skills.model import Interface, Skill, SkillCatalog, SkillRoot, ToolDependency
from codex_py.skills.roots import SYSTEM_DIRECTORIES, PluginSkills, SkillRootsRequest
from codex_py.skills.rules import SkillSwitch
from codex_py.skills.scan import find_skill_files
from codex_py.skills.service import SkillService, load_warnings


class Workplace:
    """A home with user skills, a project with repo skills, and the cache between starts."""

    def __init__(self, top: Path) -> None:
        self.top = top.resolve()
        self.home = self.top / "home"
        self.project = self.top / "project"
        self.user = self.home / "skills"
        self.repo = self.project / ".agents" / "skills"
        for directory in (self.user, self.repo):
            directory.mkdir(parents=True, exist_ok=True)
        self.cache = self.home / "cache" / "skills"

    def request(self) -> SkillRootsRequest:
        return SkillRootsRequest(self.home, self.top, self.project, self.project, system=self.top / "etc")

    def start(self) -> SkillService:
        return SkillService(self.cache)

    def load(self, *rules: SkillSwitch) -> SkillCatalog:
        return self.start().catalog(self.request(), rules)


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def write(directory: Path, name: str, description: str = "does it", extra: str = "") -> Path:
    (directory / name).mkdir(parents=True, exist_ok=True)
    file = directory / name / "SKILL.md"
    file.write_text(f"---\nname: {name}\ndescription: {description}\n{extra}---\n\n# Body\n")
    return file


def metadata(directory: Path, text: str) -> Path:
    (directory / "agents").mkdir(parents=True, exist_ok=True)
    file = directory / "agents" / "openai.yaml"
    file.write_text(text)
    return file


def names(catalog: SkillCatalog) -> list[str]:
    return [skill.name for skill in catalog.skills]


def test_a_skill_has_all_that_its_two_files_say(place: Workplace) -> None:
    file = write(
        place.repo,
        "lint",
        extra="metadata:\n  short-description: short\nallowed-tools: Read\npolicy:\n  allow_implicit_invocation: true\n"
        "interface:\n  display_name: From skill\n  brand_color: '#123456'\n",
    )
    metadata(
        file.parent,
        "interface: {display_name: Lint, icon_small: assets/a.png}\n"
        "dependencies: {tools: [{type: env_var, value: KEY}]}\npolicy: {allow_implicit_invocation: false}\n",
    )
    assert place.load().skills == (
        Skill(
            "lint",
            "does it",
            "short",
            file,
            file,
            SkillRoot(place.repo, "repo", "agents", inside=place.project),
            None,
            Interface("Lint", None, file.parent / "assets" / "a.png", None, "#123456"),
            (ToolDependency("env_var", "KEY"),),
            False,
            True,
            ("Read",),
        ),
    )


def test_a_catalogue_from_the_cache_is_the_same(place: Workplace) -> None:
    file = write(place.user, "a", "é" * 2000, extra="allowed-tools: [A, B]\nuser-invocable: false\n")
    metadata(file.parent, "interface: {display_name: X}\ndependencies: {tools: [{type: mcp, value: y, url: z}]}")
    write(place.user, "b", "''")
    (write(place.user, "c").parent / "agents").mkdir()
    metadata(place.user / "c", "- broken")
    (place.user / "d").mkdir()
    os.mkfifo(place.user / "d" / "SKILL.md")
    first = place.load()
    assert first.skills[0].description == "é" * 1021 + "..."
    assert len(first.skills) == len(first.problems) == 2
    assert place.load() == first
    assert place.load() == first


def test_catalogue_order_is_scope_then_name_then_path(place: Workplace) -> None:
    for directory in (place.user, place.repo, place.top / "etc" / "skills"):
        write(directory, "b")
        write(directory, "a")
    for name in ("s-b", "s-a"):
        write(place.user / SYSTEM_DIRECTORIES[0], name)
    write(place.user / "x", "a")
    catalog = place.load()
    assert [(skill.scope, skill.name) for skill in catalog.skills] == [
        *(("repo", "a"), ("repo", "b"), ("user", "a"), ("user", "a"), ("user", "b")),
        *(("system", "s-a"), ("system", "s-b"), ("admin", "a"), ("admin", "b")),
    ]
    assert [skill.path.parent.parent.name for skill in catalog.find("a")[1:3]] == ["skills", "x"]


def test_a_bundled_skill_gives_way_to_another_of_its_name(place: Workplace) -> None:
    for name in ("a", "b", "c"):
        write(place.user / SYSTEM_DIRECTORIES[0], name)
    write(place.repo, "a")
    own = write(place.user, "b")
    catalog = place.load()
    assert [(skill.scope, skill.name) for skill in catalog.skills] == [("repo", "a"), ("user", "b"), ("system", "c")]
    assert load_warnings(catalog) == (
        "your own or the project's `a`, `b` is used instead of the bundled skill of that name",
    )
    off = place.load(SkillSwitch(path=own))
    assert [(skill.scope, skill.name) for skill in off.enabled()] == [("repo", "a"), ("system", "b"), ("system", "c")]


def test_metadata_may_be_a_link_and_no_device(place: Workplace) -> None:
    (place.top / "shared.yaml").write_text("interface: {display_name: Shared}")
    for name, target in {"a": place.top / "shared.yaml", "b": Path("/dev/zero"), "c": place.top / "none"}.items():
        (write(place.user, name).parent / "agents").mkdir()
        (place.user / name / "agents" / "openai.yaml").symlink_to(target)
    catalog = place.load()
    assert [skill.interface for skill in catalog.skills] == [Interface("Shared"), None, None]
    assert [(str(one.path.parent.parent.name), one.message) for one in catalog.remarks] == [
        ("b", "not a regular file"),
        ("c", "no such file or directory"),
    ]


def test_metadata_of_a_project_does_not_lead_out_of_it(place: Workplace) -> None:
    (place.top / "secret.yaml").write_text("interface: {display_name: Secret}")
    (write(place.repo, "a").parent / "agents").mkdir()
    (place.repo / "a" / "agents" / "openai.yaml").symlink_to(place.top / "secret.yaml")
    catalog = place.load()
    assert catalog.skills[0].interface is None
    assert [one.message for one in catalog.remarks] == ["a link that leads out of the project"]


def test_skills_of_a_plugin_carry_its_name(place: Workplace) -> None:
    root = place.top / "plugins" / "p"
    file = write(root / "skills", "a")
    metadata(file.parent, "interface: {icon_small: ../../assets/i.png}")
    plugin = PluginSkills(root / "skills", root, "p@market", "p")
    (skill,) = place.start().catalog(place.request().replace(plugin_roots=(plugin,))).skills
    assert (skill.name, skill.plugin_id, skill.namespace) == ("p:a", "p@market", "p")
    assert skill.interface == Interface(icon_small=root / "assets" / "i.png")
    long = PluginSkills(root / "skills", root, "p@market", "n" * 1024)
    (problem,) = place.start().catalog(place.request().replace(plugin_roots=(long,))).problems
    assert problem.message == "invalid name: exceeds maximum length of 1024 characters"


def _edit(place: Workplace) -> None:
    write(place.user, "a", "changed")


def _edit_same_size(place: Workplace) -> None:
    write(place.user, "a", "does IT")


def _add(place: Workplace) -> None:
    write(place.user, "b")


def _add_root(place: Workplace) -> None:
    write(place.project / ".codex" / "skills", "c")


def _remove(place: Workplace) -> None:
    (place.user / "a" / "SKILL.md").unlink()


def _hide(place: Workplace) -> None:
    metadata(place.user / "a", "policy: {allow_implicit_invocation: false}")


def _name_plugin(place: Workplace) -> None:
    (place.user / ".codex-plugin").mkdir()
    (place.user / ".codex-plugin" / "plugin.json").write_text('{"name": "p"}')


def _mend_link(place: Workplace) -> None:
    write(place.top, "later")


@pytest.mark.parametrize("change", [_edit, _edit_same_size, _add, _add_root, _remove, _hide, _name_plugin, _mend_link])
@pytest.mark.parametrize("restart", [False, True])
def test_a_change_counts_on_the_next_turn(place: Workplace, change: Callable[[Workplace], None], restart: bool) -> None:
    write(place.user, "a")
    (place.user / "link").symlink_to(place.top / "later")
    request = place.request().replace(project_config_dirs=(place.project / ".codex",))
    service = place.start()
    before = service.catalog(request)
    change(place)
    after = (place.start() if restart else service).catalog(request)
    assert after != before
    assert after == SkillService().catalog(request)


def test_a_plugins_links_stay_in_the_plugin(place: Workplace) -> None:
    plugin = place.top / "plugins" / "p"
    write(plugin / "common", "a")
    write(place.top / "src", "b")
    (plugin / "skills").mkdir()
    (plugin / "skills" / "a").symlink_to(plugin / "common" / "a")
    (plugin / "skills" / "b").symlink_to(place.top / "src" / "b")
    plugins = (PluginSkills(plugin / "skills", plugin, "p@m", "p"),)
    assert names(place.start().catalog(place.request().replace(plugin_roots=plugins))) == ["p:a"]


def test_metadata_edited_in_place_counts_on_the_next_turn(place: Workplace) -> None:
    file = metadata(write(place.user, "a").parent, "interface: {display_name: A}")
    service = place.start()
    service.catalog(place.request())
    file.write_text("interface: {display_name: B}")
    assert service.catalog(place.request()).skills[0].interface == Interface("B")
    (file.parent / "openai.yaml").unlink()
    assert service.catalog(place.request()).skills[0].interface is None


def settled(service: SkillService, place: Workplace) -> SkillCatalog:
    """The catalogue once nothing of it was written in this very moment."""
    catalog = service.catalog(place.request())
    while (again := service.catalog(place.request())) is not catalog:
        catalog = again
    return catalog


def test_nothing_is_made_again_when_nothing_changed(place: Workplace) -> None:
    write(place.user, "a")
    service = place.start()
    first = settled(service, place)
    assert service.catalog(place.request()) is first
    reloaded = service.catalog(place.request(), force_reload=True)
    assert reloaded is not first
    assert reloaded == first


def test_a_start_with_a_good_cache_needs_no_yaml(place: Workplace) -> None:
    for number in range(20):
        write(place.user, f"s{number}")
    settled(place.start(), place)
    script = (
        "import sys; from pathlib import Path; from codex_py.skills.service import SkillService as S\n"
        "from codex_py.skills.roots import SkillRootsRequest as R\n"
        "top = Path(sys.argv[1]); home, project = top / 'home', top / 'project'\n"
        "c = S(home / 'cache' / 'skills').catalog(R(home, top, project, project, system=top / 'etc'))\n"
        "print(len(c.skills), 'yaml' in sys.modules, 'pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script, place.top], capture_output=True, text=True, check=True)
    assert done.stdout == "20 False False\n"


def test_the_cache_is_private(place: Workplace) -> None:
    write(place.user, "a")
    place.load()
    files = list(place.cache.iterdir())
    assert files
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(place.cache.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 1000, b"codex-py skills 2 00000000\n{}"])
def test_a_damaged_cache_is_ignored(place: Workplace, damage: bytes) -> None:
    write(place.user, "a")
    whole = place.load()
    for file in place.cache.iterdir():
        file.write_bytes(damage)
    assert place.load() == whole
    for file in place.cache.iterdir():
        raw = file.read_bytes()
        file.write_bytes(raw[: len(raw) // 2])
    assert place.load() == whole


def test_a_cache_that_cannot_be_written_is_done_without(place: Workplace) -> None:
    write(place.user, "a")
    place.cache.parent.mkdir()
    place.cache.write_text("in the way")
    assert names(place.load()) == names(place.load()) == ["a"]


def test_the_number_of_cache_files_is_bounded(place: Workplace) -> None:
    place.cache.mkdir(parents=True)
    for number in range(100):
        (place.cache / f"{number}.json").touch()
    write(place.user, "a")
    place.load()
    assert len(list(place.cache.iterdir())) <= 64


def test_many_sessions_may_write_the_cache_at_once(place: Workplace) -> None:
    for number in range(30):
        write(place.user, f"s{number:02}")
    with ThreadPoolExecutor(8) as pool:
        catalogs = list(pool.map(lambda _: place.load(), range(24)))
    assert all(catalog == catalogs[0] for catalog in catalogs)
    assert place.load() == catalogs[0]
    assert not [file for file in place.cache.iterdir() if file.suffix != ".json"]


def test_each_skill_is_read_once_and_not_again_at_the_next_start(place: Workplace) -> None:
    for number in range(200):
        write(place.user, f"skill-{number:03}")
    script = (
        "import sys; from pathlib import Path; from codex_py.skills.service import SkillService as S\n"
        "from codex_py.skills.roots import SkillRootsRequest as R\n"
        "top = Path(sys.argv[1]); home, project = top / 'home', top / 'project'\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, of: opened.append(str(of[0])) if event == 'open' else None)\n"
        "service, request = S(home / 'cache' / 'skills'), R(home, top, project, project, system=top / 'etc')\n"
        # A slow machine may need more than one turn for so many.
        "while (catalog := service.catalog(request)).notes: pass\n"
        "print(len(catalog.skills), sum(name.endswith('SKILL.md') for name in opened))"
    )
    result = [subprocess.check_output([sys.executable, "-c", script, place.top], text=True) for _ in range(2)]
    assert result == ["200 200\n", "200 0\n"]


@pytest.mark.parametrize("more", [0, 1], ids=["directories", "files"])
def test_what_a_machine_at_its_limits_could_not_read_is_read_at_the_next_start(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    """As with too many open files: the file of a project takes two descriptors, a directory one."""
    write(place.repo, "lint")
    monkeypatch.setattr(record, "_TICK_NS", 0)  # as if it was written a while ago
    service = SkillService(place.cache)
    assert find_skill_files(SkillRoot(place.repo, "repo", "agents")).files
    first_free = os.dup(0)
    os.close(first_free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first_free + more, limits[1]))
    try:
        assert names(service.catalog(place.request())) == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert names(service.catalog(place.request())) == ["lint"]
    assert names(place.load()) == ["lint"]


def write_hostile(place: Workplace) -> None:
    """Sixty skills of a repository, of which a third is good but for thirty megabytes of nothing."""
    for number in range(20):
        with write(place.repo, f"big{number}").open("ab") as file:
            file.truncate(30 * 1024 * 1024)
        deep = write(place.repo, f"deep{number}")
        deep.write_text("---\nname: a\ndescription: b\nx:\n " + " -" * 30_000 + "\n---\n")
        wide = write(place.repo, f"wide{number}")
        wide.write_text("---\nname: a\ndescription: b\nx:\n" + "- a\n" * 15_000 + "\n---\n")


def test_hostile_skills_are_refused_and_do_not_fill_the_memory(place: Workplace) -> None:
    write_hostile(place)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    service = place.start()
    # A slow machine may need more than one turn for them.
    while (catalog := service.catalog(place.request())).notes:
        pass
    assert len(catalog.skills) == 20
    assert len(catalog.problems) == 40
    assert len(load_warnings(catalog)) == 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024
