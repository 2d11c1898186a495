"""The pages: links resolve, lists are those of the code, commands exist, and what is shown is what is printed."""

import argparse
import re
import shlex
import sys
from pathlib import Path

import pytest
from outlives.invariants.command import _parser
from outlives.invariants.proof.lemmas import GOAL, LEMMAS
from outlives.invariants.userfile import load_named
from outlives.invariants.verdict import EXIT_STATUS
from outlives.model.errors import OutlivesError
from outlives.model.lifetime import GUARDS
from outlives.model.profiles import PROFILES
from outlives.model.world import Rules

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import refresh  # noqa: E402 -- docs/ is no package

PAGES = (*sorted((ROOT / "docs").glob("*.md")), ROOT / "CHANGELOG.md", ROOT / "README.md")
REFRESH = "run python docs/refresh.py"
BLOCKS = [(page.name, block) for page in refresh.pages() for block in refresh.BLOCK.finditer(page.read_text("utf-8"))]


def names(page: Path) -> str:
    return page.name


def text(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


# --- generated parts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "block"), BLOCKS, ids=lambda value: value if isinstance(value, str) else value[0][:60]
)
def test_generated_parts_are_up_to_date(page: str, block: re.Match[str]) -> None:
    if block["kind"] == "recorded":
        assert re.match(r"Recorded on \d{4}-\d\d-\d\d with Python [\d.]+, outlives [\d.]+, ", block["body"]), REFRESH
        assert f"$ {block['rest']}\n" in block["body"]
    else:
        assert block["body"].strip() == refresh.generated(block["kind"], block["rest"]).strip(), REFRESH


def test_the_page_has_every_lemma_and_no_other() -> None:
    block = next(block for page, block in BLOCKS if page == "theory.md" and block["kind"] == "lemmas")
    assert re.findall(r"^- \*\*([A-Z-]+)\*\*: ", block["body"], re.MULTILINE) == [
        lemma.name for lemma in (*LEMMAS, GOAL)
    ]


def test_the_page_lists_every_file() -> None:
    listed = set(re.findall(r"^- `([\w/.]+\.py)`: ", text("architecture.md"), re.MULTILINE))
    there = {
        str(path.relative_to(ROOT))
        for folder in ("model", "invariants", "tests", "docs")
        for path in (ROOT / folder).rglob("*.py")
        if path.read_text(encoding="utf-8").strip()
    }
    assert listed == there, REFRESH


def test_the_recorded_table_has_every_guard_twice() -> None:
    block = next(block for page, block in BLOCKS if page == "theory.md" and block["rest"].startswith("outlives table"))
    for guard in GUARDS:
        assert len(re.findall(rf"^{guard} +(?:proved|UNSAFE)", block["body"], re.MULTILINE)) == 2


def test_the_matrices_have_every_profile() -> None:
    tables = [block["body"] for page, block in BLOCKS if page == "findings.md" and block["kind"] == "matrix"]
    assert tables
    for table in tables:
        assert re.findall(r"^\| ([\w.]+) \|", table, re.MULTILINE)[1:] == list(PROFILES)


def test_a_changed_page_is_noticed() -> None:
    page = text("theory.md").replace("- **UPKEEP**", "- **UPKEPT**")
    assert refresh.refreshed(page) == text("theory.md") != page


# --- links, names, commands -------------------------------------------------------------------------------------------


def _without_output(page: Path) -> str:
    return re.sub(r"```text\n.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def _prose(page: Path) -> str:
    """The page without its blocks of code, where nothing is a link or a heading."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """What a link may name after `#`, as GitHub makes it of headings: a second one of the same words gets a number."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", _prose(page), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {f"{slug}-{number}" if number else slug for slug, last in found.items() for number in range(last + 1)}


def _broken(page: Path) -> list[str]:
    """The links that lead nowhere. Addresses of the network are not asked: a test must not hang on them."""
    broken = []
    text = re.sub(r"`[^`\n]+`(?!\])", "", _prose(page))
    for target in re.findall(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)|^\[[^]]+\]: *(\S+)", text, re.MULTILINE):
        where, _, anchor = "".join(target).partition("#")
        if "://" in where or where.startswith("mailto:"):
            continue
        there = (page.parent / where).resolve() if where else page
        if not there.exists() or (there.suffix == ".md" and anchor and anchor not in _anchors(there)):
            broken.append("".join(target))
    return broken


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_links_resolve(page: Path) -> None:
    assert _broken(page) == []


def test_links_are_found_and_what_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(
        "# A `b`, c!\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n```\n", encoding="utf-8"
    )
    good = "[a](other.md) [`b`](other.md#a-b-c) [c](#here) [d](other.md#twice-1) [e](https://example.org/none#x)"
    bad = ["none.md", "other.md#none", "#nowhere", "other.md#twice-2", "other.md#no-heading", "later.md"]
    page = tmp_path / "page.md"
    page.write_text(
        f"# Here\n\n{good}\n{' '.join(f'[x]({each})' for each in bad[:-1])}\n\n[y]: {bad[-1]}\n\n"
        "```md\n[in code](nowhere.md)\n```\n`[in code](nowhere.md)`\n",
        encoding="utf-8",
    )
    assert _broken(page) == bad


def test_every_page_is_led_to() -> None:
    linked = "".join(_prose(page) for page in PAGES)
    for page in (ROOT / "docs").glob("*.md"):
        assert re.search(rf"\((?:docs/)?{page.name}[#)]|`docs/{page.name}`", linked), page.name


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_traces_and_tests_that_are_named_exist(page: Path) -> None:
    shown = _without_output(page)
    for trace in re.findall(r"`(20\d\d-\d\d-\d\d-[\w.-]+)`", shown):
        assert (ROOT / "tests/regressions" / f"{trace}.itf.json").is_file(), trace
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for test in re.findall(r"`(test_\w+)`", shown):
        assert f"def {test}(" in sources, test
    for path in re.findall(r"`((?:model|invariants|tests|docs)/[\w/.-]+)`", shown):
        assert (ROOT / path).exists(), path


def _commands(page: Path) -> set[str]:
    shown = page.read_text(encoding="utf-8")
    found = re.findall(r"^(?:\$ |\.venv/bin/)(outlives .+)$", shown, re.MULTILINE)
    found += re.findall(r"`(outlives [a-z][^`]*)`", shown)
    return {command.split(" > ")[0].split(" | ")[0] for command in found}


def _exists(command: str) -> bool:
    """Whether the options are the command's; where a text names a command without its argument, one is put in."""
    for more in ([], ["ARGUMENT"]):
        try:
            _parser().parse_args([*shlex.split(command)[1:], *more])
        except (OutlivesError, SystemExit):
            continue
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_commands_that_are_shown_exist(page: Path) -> None:
    for command in _commands(page):
        assert _exists(command), command


def test_commands_are_found_and_a_wrong_one_is_noticed(tmp_path: Path) -> None:
    assert len(_commands(ROOT / "docs/theory.md")) >= 3
    page = tmp_path / "page.md"
    page.write_text("`outlives chek`\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="outlives chek"):
        test_commands_that_are_shown_exist(page)


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_no_package_registry_is_named(page: Path) -> None:
    hosts = r"\b(pypi|pythonhosted|npmjs|crates|rubygems|anaconda|conda)\.(org|com|io|net)\b"
    assert re.findall(hosts, page.read_text(encoding="utf-8"), re.IGNORECASE) == []


def test_exit_statuses_are_those_of_the_code() -> None:
    rows = {int(number) for number in re.findall(r"^\| (\d+) \|", text("ci.md"), re.MULTILINE)}
    assert rows == {2, 130} | set(EXIT_STATUS.values())


def test_the_security_page_names_every_option_that_leads_to_code() -> None:
    commands = next(each.choices for each in _parser()._actions if isinstance(each, argparse._SubParsersAction))
    leading = {
        action.option_strings[-1]
        for command in commands.values()
        for action in command._actions
        if action.option_strings and re.search(r"path\.py|module\.Class|executed|dask:|checkpoint", action.help or "")
    }
    assert {"--source", "--profile", "--fault", "--executor", "--scheduler-cls", "--vllm-config"} <= leading
    page = text("security.md")
    assert {option for option in leading if not re.search(rf"{option}\b", page)} == set()
    assert "**Traces.** Never." in page


# --- the example ------------------------------------------------------------------------------------------------------


def test_the_example_profile_and_fault_load() -> None:
    example = ROOT / "docs/examples/own_scheduler.py"
    mine = load_named(f"{example}:mine", "profile")
    assert mine.guard.name == "half-confirmed"
    planted = load_named(f"{example}:leak", "fault")(mine.rules)
    assert isinstance(planted, Rules)
    assert planted.release is not mine.rules.release


def test_the_example_fault_is_found() -> None:
    command = "check --fault docs/examples/own_scheduler.py:leak --engine exhaustive --property REFERENCES-MATCH"
    shown = refresh.printed(f"outlives {command} --ascii")
    assert "VIOLATED REFERENCES-MATCH (exhaustive): shortest possible" in shown
    assert "k0 is referenced by nobody, but the\n  book holds it for r0" in shown


def test_the_example_guard_is_refuted() -> None:
    shown = refresh.printed(
        "outlives prove --profile docs/examples/own_scheduler.py:mine --relax A3 --without kv-load-failure --ascii"
    )
    assert "VIOLATED GATHER-AFTER-FREE (bounded checking)" in shown
    assert "1 position short of confirmed" in shown
