"""`outlives sweep`: specifications, items, the matrix, and the same bytes with any number of workers."""

import json
import tomllib
from pathlib import Path

import pytest
from command_runs import Run, Said, runner
from outlives.invariants.sweep_items import canonical, planned
from outlives.invariants.sweep_spec import Spec, spec_of
from outlives.model.trace import read_trace
from sweep_runs import SMALL, files_of, keys, spec_file

EXAMPLE = Path(__file__).resolve().parent.parent / "docs/examples/sweep.toml"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


# --- the specification ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "profile = ['0.24.0']",
            "s.toml, line 1: unknown key 'profile'. Did you mean 'profiles'? Known: title, profiles",
        ),
        ("title = 3", "s.toml, line 1: title must be a text, not 3."),
        ("title = ' '", "s.toml, line 1: title has an empty text: leave it out, or write something."),
        (
            'title = "a\\u0007b"',
            "s.toml, line 1: title has a character that cannot be printed in one line ('\\x07'): 'a\\x07b'.",
        ),
        ("profiles = ['']", "s.toml, line 1: profiles has an empty text"),
        ("profiles = []", "s.toml, line 1: profiles is an empty list: leave the key out"),
        ("profiles = '0.24.0'", "s.toml, line 1: profiles must be a list of texts, not '0.24.0'."),
        ("profiles = [24]", "s.toml, line 1: profiles must be a list of texts, and 24 is none."),
        ("profiles = ['0.24']", "s.toml, line 1: profiles: unknown profile '0.24'. Did you mean '0.24.0'?"),
        ("profiles = ['0.24.0', '0.24.0']", "s.toml, line 1: profiles has '0.24.0' twice."),
        ("profiles = ['nowhere.py:mine']", "s.toml: profiles: there is no file"),
        ("guards = ['none']", "s.toml, line 1: guards: unknown guard 'none'."),
        ("assumptions = ['A5']", "s.toml, line 1: assumptions: unknown assumption 'A5'."),
        ("assumptions = ['A1 any']", "s.toml, line 1: assumptions has 'A1 any': after a list with A3"),
        ("scopes = ['rival']", "s.toml, line 1: scopes: unknown scope 'rival'. Did you mean 'rivals'?"),
        (
            "scopes = [3]",
            "s.toml, line 1: scopes is wrong in entry 1: it must be the name of a scope, or a table, not 3.",
        ),
        ("scopes = [{ slot = 3 }]", "s.toml, line 1: scopes: unknown key of a scope 'slot'. Did you mean 'slots'?"),
        ("scopes = [{ slots = true }]", "s.toml, line 1: scopes is wrong in entry 1: slots must be a number or a text"),
        ("scopes = [{ split = 1 }]", "s.toml, line 1: scopes is wrong in entry 1: split must be true or false, not 1."),
        ("scopes = [{ slots = 'x' }]", "s.toml, line 1: scopes: --slots 'x' is neither a number nor a range"),
        ("scopes = [{ slots = 2 }, { slots = 2 }]", "s.toml, line 1: scopes has 'slots 2' twice"),
        ("scopes = [{ depth = 99 }]", "s.toml: scopes: 'depth 99': --depth is 99; it must be from 1 to 8."),
        ("scopes = [{ scenario = 'gap-one', slots = 3 }]", "s.toml: scopes: 'scenario gap-one, slots 3' goes with"),
        ("seeds = []", "s.toml, line 1: seeds is an empty list"),
        ("seeds = [1.5]", "s.toml, line 1: seeds must be a list of whole numbers, and 1.5 is none."),
        ("seeds = [true]", "s.toml, line 1: seeds must be a list of whole numbers, and true is none."),
        ("seeds = [1, 2, 1]", "s.toml, line 1: seeds has 1 twice."),
        ("seeds = 7", "s.toml, line 1: seeds must be a list of numbers, or a text"),
        ("seeds = '1..9999999'", "s.toml, line 1: seeds is a range of 9,999,999 numbers; at most 100,000"),
        ("engines = ['machines']", "s.toml, line 1: engines: unknown engine 'machines'. Did you mean 'machine'?"),
        ("settings = 'fast'", "s.toml, line 1: settings: unknown settings 'fast'."),
        ("settings = ['quick']", "s.toml, line 1: settings must be a text, not ['quick']."),
        ("cases = 0", "s.toml, line 1: cases must be a number from 1 on, not 0."),
        ("cases = 100000000", "s.toml, line 1: cases: the number of cases is 100000000"),
        ("states = 'all'", "s.toml, line 1: states must be a number from 1 on, not 'all'."),
        ("properties = ['PROGRES']", "s.toml, line 1: properties: unknown property 'PROGRES'."),
        ("engines = ['proof']\nproperties = ['PROGRESS']", "s.toml: engines is the proof alone"),
        ("seeds = '1..60000'\nscopes = ['usual', { slots = 2 }]", "s.toml: the number of items is 120,000"),
        ("seeds = [1,", "s.toml is not TOML: "),
        ("seeds = [1]\nseeds = [2]", "s.toml is not TOML: "),
    ],
)
def test_what_is_wrong_with_a_specification_is_one_sentence_with_file_and_key(
    text: str, words: str, run: Run, tmp_path: Path
) -> None:
    said = run("sweep", spec_file(tmp_path, text))
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"outlives: {words}")
    assert said.err.count("\n") == 1
    assert not (tmp_path / ".outlives").exists()


def test_a_file_that_cannot_be_read_and_commands_that_contradict(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"title = '\xff'")
    for arguments, words in (
        (("none.toml",), "none.toml: there is no such file"),
        (("bytes.toml",), "bytes.toml cannot be read: "),
        ((), "sweep needs a SPEC.toml, or --resume FOLDER"),
        (("--resume", "nowhere"), "--resume nowhere: there is no nowhere/sweep.json, so no sweep was begun there."),
        (("--resume", "x", "--out", "y"), "--resume FOLDER names the folder that the sweep has"),
        ((spec_file(tmp_path), "--workers", "0"), "--workers is 0; it must be from 1 to 64."),
        (("s.toml", "--executor", "ray"), "unknown executor 'ray'. Known: processes, dask:ADDRESS."),
        (("s.toml", "--executor", "dask:x", "--workers", "2"), "--workers is of processes"),
    ):
        said = run("sweep", *arguments)
        assert (said.status, said.out) == (2, "")
        assert said.err.startswith(f"outlives: {words}"), said.err
    assert not (tmp_path / ".outlives").exists()


def test_a_users_file_that_raises_is_told_with_file_and_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\nraise ValueError('no')\n")
    said = run("sweep", spec_file(tmp_path, "profiles = ['mine.py:mine']"))
    assert said.status == 2
    assert said.err.startswith("outlives: s.toml: profiles: --profile ")
    assert "mine.py, line 2, raised ValueError: no" in said.err


def test_a_specification_comes_back_from_its_plain_form() -> None:
    text = SMALL.replace("{ scenario", '{ slots = "2..4", without = ["sessions"] }, { scenario')
    spec = spec_of(tomllib.loads(text), "s.toml", Path())
    assert Spec.from_plain(json.loads(canonical(spec.plain()))) == spec
    assert spec.seeds == (3, 4)
    assert spec.scopes[1].given == {"without": ("sessions",), "numbers": {"slots": (2, 4)}}


# --- items ------------------------------------------------------------------------------------------------------------


def test_what_is_the_same_question_is_one_item() -> None:
    base = "profiles = ['repaired']\nengines = ['machine', 'exhaustive']\n"
    assert len(keys(base)) == 1
    assert keys(base + "guards = ['own', 'confirmed']") == keys(base), "which is its own"
    assert len(keys(base + "guards = ['own', 'settled']")) == 2
    assert len(keys(base + "seeds = [0, 1]")) == 2
    assert keys(base + "seeds = [0, 1]\nscopes = ['rivals']") == keys(base + "scopes = ['rivals']"), "nothing is drawn"
    plan = planned(spec_of(tomllib.loads(base + "seeds = [5, 6]"), "s.toml", Path()), "s.toml")
    assert [item.about["engines"] for item in plan.items.values()] == [["machine", "exhaustive"], ["machine"]]
    assert keys("profiles = ['repaired', '0.24.0']") == list(reversed(keys("profiles = ['0.24.0', 'repaired']")))


def test_the_key_of_an_item_is_the_same_in_every_process() -> None:
    assert keys("engines = ['machine']") == ["ac3fed064688"]


def test_a_users_file_that_changes_makes_other_items(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text("from outlives.model.profiles import profile_named\nmine = profile_named('repaired')\n")
    text = f"profiles = ['{own}:mine']"
    before = keys(text)
    assert before == keys(text)
    own.write_text(own.read_text() + "# changed\n")
    assert keys(text) != before


def test_what_a_release_does_not_have_is_no_item_but_is_told(run: Run, tmp_path: Path) -> None:
    text = "profiles = ['0.11.0', 'repaired']\nscopes = [{ name = 'd', diffusion = true, without = ['sessions'] }]\n"
    said = run("sweep", spec_file(tmp_path, text + "engines = ['machine']\ncases = 2\n"), "--json")
    rows = said.object["tables"]["matrix"]["rows"]
    assert rows[0]["A1-A4"] == "-"
    assert rows[1]["A1-A4"] != "-"
    assert any("1 cell that cannot be: --diffusion: profile 0.11.0" in each for each in said.object["not_covered"])
    said = run("sweep", spec_file(tmp_path, text.replace(", 'repaired'", "")))
    assert said.status == 2
    assert "s.toml: scopes: 'd' goes with nothing else in it: --diffusion" in said.err


# --- reports ----------------------------------------------------------------------------------------------------------


@pytest.mark.campaign
def test_the_report_is_the_same_with_any_number_of_workers(run: Run, tmp_path: Path) -> None:
    name = spec_file(tmp_path)
    said: list[Said] = []
    files = []
    for count in ("1", "2", "3"):
        said.append(run("sweep", name, "--json", "--workers", count, "--out", count))
        files.append(files_of(tmp_path / count / "sweep-0001"))
    assert said[0].err == ""
    for count, each in zip("123", said, strict=True):
        assert each.out.replace(f'"{count}/', '"N/').replace(f" {count}/", " N/") == said[0].out.replace(
            '"1/', '"N/'
        ).replace(" 1/", " N/")
    assert files[0] == files[1] == files[2]
    assert sum(name.startswith("items/") for name in files[0]) == len(keys(SMALL))


def test_matrix_rows_traces_and_status(run: Run, tmp_path: Path) -> None:
    said = run("sweep", spec_file(tmp_path), "--json", "--out", "out")
    report = said.object
    assert said.status == report["exit_status"] == 1
    matrix = {(row["profile"], row["guard"]): row for row in report["tables"]["matrix-1"]["rows"]}
    assert matrix["repaired", "own"]["A1-A4"] == "exhausted"
    matrix = {(row["profile"], row["guard"]): row for row in report["tables"]["matrix-2"]["rows"]}
    assert matrix["0.24.0", "own"]["A1-A4"] == "violated 1"
    assert matrix["repaired", "own"] == {"profile": "repaired", "guard": "own", "A1-A4": "passed", "A3 any": "passed"}
    violated = report["tables"]["violated"]["rows"]
    assert {row["property"] for row in violated} == {each["property"] for each in report["violations"]}
    for row in violated:
        trace = tmp_path / f"out/sweep-0001/traces/{row['item']}-{row['engine']}-{row['property']}.itf.json"
        recorded = read_trace(trace)
        assert (recorded.property_name, len(recorded.steps) - 1) == (row["property"], int(row["actions"]))
    rows = {(row["engine"], row["property"]): row for row in report["results"]}
    assert rows["machine", "PROGRESS"]["verdict"] == "violated"
    assert rows["machine", "GATHER-AFTER-FREE"]["verdict"] == "passed"
    assert report["title"] == ("sweep: 2 profiles x 2 guards x 2 sets of assumptions x 2 scopes x 2 seeds")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("scopes = ['last-chunk']", 0),
        ("profiles = ['0.24.0', 'repaired']\nscopes = ['adjacent-items']", 1),
        ("scopes = ['two-at-once', 'tight-cache']\nstates = 500", 3),
        ("engines = ['machine']\ncases = 2", 4),
    ],
)
def test_the_exit_status_is_that_of_all_items_together(text: str, status: int, run: Run, tmp_path: Path) -> None:
    said = run("sweep", spec_file(tmp_path, text))
    assert said.status == status
    assert f"Exit status {status}: " in said.out


def test_an_answer_holds_nothing_that_differs_from_run_to_run(run: Run, tmp_path: Path) -> None:
    text = "scopes = ['tight-cache']\nstates = 500"
    run("sweep", spec_file(tmp_path, text), "--out", "out")
    run("sweep", "s.toml", "--out", "out")
    assert files_of(tmp_path / "out/sweep-0001") == files_of(tmp_path / "out/sweep-0002")
    assert "states/s" not in str(files_of(tmp_path / "out/sweep-0001"))


def test_the_example_of_the_page_runs(run: Run, tmp_path: Path) -> None:
    said = run("sweep", EXAMPLE, "--json")
    assert said.status == 1
    shown = (EXAMPLE.parent.parent / "sweep.md").read_text(encoding="utf-8")
    assert EXAMPLE.read_text(encoding="utf-8") in shown


def test_formats_go_into_the_folder(run: Run, tmp_path: Path) -> None:
    endings = {"junit": ".xml", "markdown": ".md", "html": ".html", "sarif": ".sarif"}
    options = [word for name in endings for word in ("--format", name)]
    text = "profiles = ['0.24.0']\nscopes = [{ scenario = 'gap-one' }]\nengines = ['machine']\nsettings = 'quick'"
    said = run("sweep", spec_file(tmp_path, text), "--out", "out", *options)
    assert said.status == 1
    for ending in endings.values():
        report = (tmp_path / f"out/sweep-0001/report{ending}").read_text(encoding="utf-8")
        assert "PROGRESS" in report
    assert len(list((tmp_path / "out/sweep-0001").glob("*-machine-PROGRESS.html"))) == 1
