from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.shell.reading import read_command_line
from codex_py.skills.implicit import SkillIndex, detect_skill_use
from codex_py.skills.model import SkillCatalog
from tests.support.work import within
from tests.unit.skill_builders import catalog, skill_on_disk

SKILLS = ".agents/skills"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with the skills `lint` and `fmt`, each with scripts."""
    for name in ("lint", "fmt"):
        made = skill_on_disk(tmp_path / SKILLS / name)
        (made.directory / "scripts/deep").mkdir(parents=True)
        for script in ("run.py", "run.sh", "deep/run.ts", "notes.txt", "tool"):
            (made.directory / "scripts" / script).write_text("")
    return tmp_path


def known(project: Path) -> SkillCatalog:
    return catalog(*(skill_on_disk(project / SKILLS / name) for name in ("lint", "fmt")))


def used(command: str, project: Path, *, workdir: Path | None = None, skills: SkillCatalog | None = None) -> list[str]:
    """`name kind` of each use."""
    index, directory = SkillIndex(skills or known(project)), workdir or project
    if not index.may_name(command, directory):
        return []
    line = read_command_line(command, str(directory), {"HOME": str(project)})
    return [f"{use.skill.name} {use.kind}" for use in detect_skill_use(line, index)]


@pytest.mark.parametrize(
    "command",
    [
        f"cat {SKILLS}/lint/SKILL.md",
        f"sed -n '1,200p' {SKILLS}/lint/SKILL.md",
        f"head -n 20 {SKILLS}/lint/SKILL.md",
        f"tail {SKILLS}/lint/SKILL.md",
        f"less {SKILLS}/lint/SKILL.md",
        f"more {SKILLS}/lint/SKILL.md",
        f"bat --plain {SKILLS}/lint/SKILL.md",
        f"awk '{{print}}' {SKILLS}/lint/SKILL.md",
        f"rg -n name {SKILLS}/lint/SKILL.md",
        f"/bin/CAT {SKILLS}/lint/SKILL.md",
        f"cat ./{SKILLS}/../skills//lint/SKILL.md",
        f"cat '{SKILLS}'/\"lint\"/SKILL\\.md",
        f"cat ~/{SKILLS}/lint/SKILL.md",
        f'cat "$HOME/{SKILLS}/lint/SKILL.md"',
        f"cat ${{HOME}}/{SKILLS}/lint/SKILL.md",
        f"cat $PWD/{SKILLS}/lint/SKILL.md $(pwd)/x",
        f"cat $(pwd)/{SKILLS}/lint/SKILL.md",
        f"D={SKILLS}/lint; cat $D/SKILL.md",
        f"export D={SKILLS}/lint && cat $D/SKILL.md",
        f"cat < {SKILLS}/lint/SKILL.md",
        f"cd {SKILLS} && cat < lint/SKILL.md",
        f"cat {SKILLS}/lint/SKILL.md | grep x",
        f"ls; true && cat {SKILLS}/lint/SKILL.md || false",
        f"cd {SKILLS}/lint && cat SKILL.md",
        f"cd {SKILLS}; cd lint; cat SKILL.md",
        f"cd; cat {SKILLS}/lint/SKILL.md",
        f"(cd {SKILLS} && cat lint/SKILL.md)",
        f"(cd /); cat {SKILLS}/lint/SKILL.md",
        f"cd / | true; cat {SKILLS}/lint/SKILL.md",
        f"x=$(cat {SKILLS}/lint/SKILL.md)",
        f'echo "$(cat {SKILLS}/lint/SKILL.md)"',
        f"diff <(cat {SKILLS}/lint/SKILL.md) /dev/null",
        f"if true; then cat {SKILLS}/lint/SKILL.md; fi",
        f"for w in $(cat {SKILLS}/lint/SKILL.md); do echo $w; done",
        f"! cat {SKILLS}/lint/SKILL.md",
        "true && " * 100 + f"cat {SKILLS}/lint/SKILL.md",
        f"cat {SKILLS}/lint/SKILL.md" + " && true" * 100,
        f"while read x; do cat {SKILLS}/lint/SKILL.md; done",
        f"for s in lint; do cat {SKILLS}/$s/SKILL.md; done",
        f"f() {{ cat {SKILLS}/lint/SKILL.md; }}; f",
        f'bash -lc "cat {SKILLS}/lint/SKILL.md"',
        f"/bin/sh -c 'cd {SKILLS} && head lint/SKILL.md | wc -l'",
        f"zsh -l -c 'cat {SKILLS}/lint/SKILL.md'",
        f"bash -o pipefail -ec 'cat {SKILLS}/lint/SKILL.md'",
        f"bash -c \"bash -c 'cat {SKILLS}/lint/SKILL.md'\"",
        f"eval 'cat {SKILLS}/lint/SKILL.md'",
        f"env A=b LANG=C cat {SKILLS}/lint/SKILL.md",
        f"A=b timeout -s KILL 10 cat {SKILLS}/lint/SKILL.md",
        f"sudo -u me nice -n 5 cat {SKILLS}/lint/SKILL.md",
        f"cat <<EOF && cat {SKILLS}/lint/SKILL.md\ntext\nEOF",
        f"cat {SKILLS}/lint/SKILL.md '",
        f"cat {SKILLS}/l*/SKILL.md",
        f"cat {SKILLS}/lint/*.md",
        f"cat {SKILLS}/{{lint,none}}/SKILL.md",
        f"cat {SKILLS}/lint/SKILL.md {SKILLS}/lint/SKILL.md; cat {SKILLS}/lint/SKILL.md",
    ],
)
def test_reading_a_skill_is_noticed(command: str, project: Path) -> None:
    assert used(command, project) == ["lint read"]


@pytest.mark.parametrize(
    "command",
    [
        *(f"{runner} {SKILLS}/lint/scripts/run.py" for runner in ("python", "python3", "python3.12", "python.exe")),
        f"bash {SKILLS}/lint/scripts/run.sh",
        f"sh -x {SKILLS}/lint/scripts/run.sh a b",
        f"/usr/bin/zsh {SKILLS}/lint/scripts/run.sh",
        f"node {SKILLS}/lint/scripts/absent.JS",
        f"deno run -A {SKILLS}/lint/scripts/deep/run.ts",
        f"ruby {SKILLS}/lint/scripts/x.rb",
        f"perl {SKILLS}/lint/scripts/x.pl",
        f"pwsh {SKILLS}/lint/scripts/x.ps1",
        f"python -u {SKILLS}/lint/scripts/run.py --fix",
        f"{SKILLS}/lint/scripts/run.py --fix",
        f"{SKILLS}/lint/scripts/tool",
        f"source {SKILLS}/lint/scripts/run.sh",
        f"cd {SKILLS}/lint && python scripts/run.py",
        f"cd {SKILLS}/lint/scripts && ./run.sh",
        f"bash -lc 'cd {SKILLS}/lint && FOO=1 python3 scripts/run.py | tee log'",
        f"for x in 1 2; do python3 {SKILLS}/lint/scripts/run.py $x; done",
    ],
)
def test_running_a_script_of_a_skill_is_noticed(command: str, project: Path) -> None:
    assert used(command, project) == ["lint script"]


@pytest.mark.parametrize(
    "command",
    [
        "",
        "ls -la",
        f"ls {SKILLS}/lint/SKILL.md {SKILLS}/lint/scripts",
        f"echo cat {SKILLS}/lint/SKILL.md",
        f"cat {SKILLS}/none/SKILL.md",
        f"cat {SKILLS}/lint/skill.md",
        f"cat {SKILLS}/lint",
        "cat SKILL.md",
        f"cat > {SKILLS}/lint/SKILL.md <<EOF\nx\nEOF",
        f"cat notes >> {SKILLS}/lint/SKILL.md",
        f"cd {SKILLS} && true; cd - && cat lint/SKILL.md",
        f"cd $UNKNOWN && cat {SKILLS}/lint/SKILL.md",
        f"cat $UNKNOWN/{SKILLS}/lint/SKILL.md",
        f"cat '$HOME/{SKILLS}/lint/SKILL.md'",
        f"rg --files {SKILLS}/lint/SKILL.md",
        f"# cat {SKILLS}/lint/SKILL.md",
        f"cat <<'EOF'\ncat {SKILLS}/lint/SKILL.md\nEOF",
        f"python -c \"print('{SKILLS}/lint/SKILL.md')\"",
        f"bash {SKILLS}/lint/scripts/notes.txt",
        f"python {SKILLS}/lint/run.py",
        f"python other.py {SKILLS}/lint/scripts/run.py",
        "python scripts/run.py",
        f"cat {SKILLS}/*.md",
        f"cat */SKILL.md {SKILLS}/**",
        "bash -c",
        "cat \0 SKILL.md",
        f"cat {'x' * 5000}/SKILL.md",
    ],
)
def test_other_commands_use_no_skill(command: str, project: Path) -> None:
    assert used(command, project) == []


def test_several_uses_come_in_the_order_of_the_commands(project: Path) -> None:
    command = f"cat {SKILLS}/lint/SKILL.md {SKILLS}/fmt/SKILL.md && python {SKILLS}/lint/scripts/run.py"
    assert used(command, project) == ["lint read", "fmt read", "lint script"]


def test_the_working_directory_counts(project: Path) -> None:
    assert used("python run.py", project, workdir=project / SKILLS / "fmt/scripts") == ["fmt script"]
    assert used("cat SKILL.md", project, workdir=project / SKILLS / "fmt") == ["fmt read"]


def test_links_lead_to_the_skill(project: Path) -> None:
    (project / "link").symlink_to(f"{SKILLS}/lint")
    assert used("cat link/SKILL.md", project) == ["lint read"]
    assert used("python link/scripts/run.py", project) == ["lint script"]


def test_a_linked_directory_of_scripts_belongs_to_the_skill(project: Path) -> None:
    made = skill_on_disk(project / SKILLS / "third")
    (project / "scripts-of-all").mkdir()
    (made.directory / "scripts").symlink_to(project / "scripts-of-all")
    skills = catalog(made)
    assert used(f"python {SKILLS}/third/scripts/x.py", project, skills=skills) == ["third script"]
    assert used("python scripts-of-all/x.py", project, skills=skills) == ["third script"]


def test_the_script_of_a_nested_skill_belongs_to_the_inner_one(project: Path) -> None:
    outer = skill_on_disk(project / "outer")
    inner = skill_on_disk(project / "outer/scripts/inner")
    command = "python outer/scripts/inner/scripts/x.py; python outer/scripts/x.py"
    assert used(command, project, skills=catalog(outer, inner)) == ["inner script", "outer script"]


def test_disabled_and_hidden_skills_are_not_noticed(project: Path) -> None:
    lint, fmt = known(project).find("lint")[0], known(project).find("fmt")[0]
    skills = catalog(fmt._replace(allow_implicit=False), disabled=(lint,))
    command = f"cat {SKILLS}/*/SKILL.md {SKILLS}/lint/SKILL.md; python {SKILLS}/fmt/scripts/run.py"
    assert used(command, project, skills=skills) == []


@pytest.mark.parametrize(
    "command",
    [
        "cat SKILL.md " + "(" * 60_000,
        "cat $(" * 10_000 + " SKILL.md",
        'SKILL `"$(<<a ' * 8_000,
        "SKILL <<a " * 16_000,
        "SKILL if case [[ " * 6_000,
        "cat " + "a/SKILL.md " * 100_000,
        "cat a/SKILL.md;" * 20_000,
        "for a in 1 2 3 4 5 6 7 8 9;do " * 20 + " cat SKILL.md" + ";done" * 20,
        "cat {a,b}" + "{a,b}" * 50 + "SKILL.md",
        "cat " + "*/" * 300 + "SKILL.md",
        "cat " + "*a" * 2000 + "SKILL.md",
        "cat " * 100_000,
        "bash -c 'bash -c \"cat SKILL.md\"';" * 1_500,
        "A=xxxxxxxxxx;" + "A=$A$A;" * 60 + "cat $A/SKILL.md",
        'cat "$a"' * 8_000 + "SKILL.md",
        "cat \ud800/SKILL.md",
        "for a in "
        + "x " * 60
        + "; do for b in "
        + "y " * 60
        + "; do bash -c '"
        + "<<a " * 3_000
        + "SKILL'; done; done",
    ],
    ids=lambda command: ascii(command[:16]),
)
def test_hostile_commands_cost_little(command: str, project: Path) -> None:
    assert within(1_000_000, lambda: used(command, project)) == []


def test_a_command_without_a_trace_of_a_skill_is_not_parsed(project: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from codex_py.skills.implicit import SkillIndex\n"
        "from tests.unit.skill_builders import catalog, skill\n"
        "index = SkillIndex(catalog(skill()))\n"
        "for command in ('ls *', 'python -m pytest -q', 'git status | head', 'cat notes.md'):\n"
        "    assert not index.may_name(command, Path('/repo'))\n"
        "assert not {'tree_sitter', 'tree_sitter_bash', 'yaml', 'pydantic'} & set(sys.modules)\n"
        "assert SkillIndex(catalog()).may_name('cat SKILL.md', Path('/')) is False\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=True, timeout=60)
