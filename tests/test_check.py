"""`outlives check` as a whole: the fixed points, the exit statuses, what a violation tells, and the same twice."""

import json
from pathlib import Path

import pytest
from command_runs import Run, runner
from fixed_points import FIXED_POINTS, SCENARIOS
from outlives.model.setup import RARE_ROUTES

QUICK = ("check", "--engine", "machine", "--cases", "5")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


# --- the fixed points -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", FIXED_POINTS)
@pytest.mark.parametrize("engine", ["machine", "exhaustive"])
def test_each_release_does_in_each_scenario_what_it_did(engine: str, profile: str, run: Run) -> None:
    said = []
    for scenario in SCENARIOS:
        # The base numbers are the first that the machine tries: two runs are enough to meet what is there.
        cases = ("--settings", "quick", "--cases", "2")
        done = run("check", "--scenario", scenario, "--profile", profile, "--engine", engine, *cases, "--json")
        verdicts = {row["property"]: row["verdict"] for row in done.object["results"] if row["engine"] == engine}
        crash, stuck = (verdicts[name] == "violated" for name in ("GATHER-AFTER-FREE", "PROGRESS"))
        said.append("crash" if crash else "stuck" if stuck else "ok")
        assert done.status == (1 if crash or stuck else 0)
        named = {each["property"] for each in done.object["violations"]}
        assert ("GATHER-AFTER-FREE" in named, "PROGRESS" in named) == (crash, stuck)
    assert " ".join(said) == FIXED_POINTS[profile]


@pytest.mark.parametrize("profile", ["0.11.0", "0.24.0"])  # a crash and a stuck one; the campaign has all
def test_each_faulty_release_is_found_without_a_scenario(profile: str, run: Run) -> None:
    name = "GATHER-AFTER-FREE" if profile == "0.11.0" else "PROGRESS"
    done = run("check", "--profile", profile, "--engine", "machine", "--cases", "250", "--property", name, "--json")
    assert done.status == 1
    assert [each["property"] for each in done.object["violations"]] == [name]


# --- exit statuses ----------------------------------------------------------------------------------------------------


def test_a_run_that_never_meets_an_item_is_vacuous(run: Run) -> None:
    said = run(*QUICK, "--items", "0")
    assert said.status == 4
    assert "it never happened that a step read an item" in " ".join(said.out.split())


@pytest.mark.parametrize(
    "closed",
    [("--drafts", "0"), ("--look-ahead", "0"), ("--without", "preempt"), ("--without", "abort"),
     ("--without", "look-ahead"), ("--without", "look-ahead", "--without", "preempt", "--without", "abort"),
     ("--items-anywhere",), ("--split",), ("--depth", "1"), ("--depth", "3")],
    ids=" ".join,
)  # fmt: skip
def test_closing_something_does_not_make_the_run_vacuous(closed: tuple[str, ...], run: Run) -> None:
    rare = [word for route in RARE_ROUTES for word in ("--without", route)]  # forty runs need not meet those
    done = run("check", "--engine", "machine", "--cases", "40", *closed, *rare, "--json")
    assert (done.status, done.object["vacuous"]) == (0, [])


def test_an_open_route_that_is_never_taken_makes_the_run_vacuous(run: Run) -> None:
    done = run("check", "--engine", "machine", "--cases", "1", "--json")
    assert done.status == 4
    assert any(line.startswith("open route ") and "--without " in line for line in done.object["vacuous"])


def test_only_what_is_asked_is_judged_and_the_rest_is_said(run: Run) -> None:
    done = run(*QUICK, "--property", "PROGRESS", "--property", "PROGRESS", "--json")
    assert [row["property"] for row in done.object["results"]] == ["PROGRESS"]
    assert {"engine exhaustive: not asked", "engine proof: not asked"} <= set(done.object["not_covered"])


def test_a_scope_too_large_says_how_far_it_got_and_what_is_left(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlives.invariants.check.SCOPE_STATES", {"ci": 50})
    done = run("check", "--scenario", "gap-one", "--engine", "exhaustive", "--json")
    assert done.status == 3
    (line,) = [line for line in done.object["not_covered"] if line.startswith("scope ")]
    assert line.startswith("scope gap-one (small): stopped by the bound of 50 states at depth ")
    assert " states/s; left: at least the " in line


def test_each_open_route_names_the_scopes_that_take_it(run: Run) -> None:
    done = run("check", "--scenario", "gap-one", "--engine", "exhaustive", "--json")
    assert done.object["routes"] == {"look-ahead": ["gap-one (small)"]}, "a scenario closes the others"
    assert done.object["provenance"]["open routes and the scopes that take them"] == {"look-ahead": "in every one"}


# --- what a violation tells -------------------------------------------------------------------------------------------


def test_a_violation_tells_the_numbers_the_steps_the_shrinking_and_the_replay(run: Run, tmp_path: Path) -> None:
    said = run("check", "--scenario", "chunk-end", "--profile", "0.20.0", "--engine", "machine", "--cases", "2")
    assert said.status == 1
    text = said.out
    assert "VIOLATED GATHER-AFTER-FREE (machine): " in text
    sentence = text[text.index("VIOLATED") : text.index("Setup")]
    assert all(word in sentence for word in ("r0", "item0", "step ", "k0"))
    steps = text[text.index("what changed") : text.index("Because")]
    assert "arrive(request=r0)" in steps
    assert "r0.status: absent -> waiting" in steps
    assert "r0.known" not in steps.split("\n")[-2], "only what changed"
    assert "Shrunk " in text
    assert " actions, shrunk to " in text
    assert max(map(len, (line for line in text.splitlines() if not line.startswith(("Replay", "File"))))) <= 100
    replay = next(line for line in text.splitlines() if line.startswith("Replay")).split(maxsplit=1)[1]
    assert replay.startswith("outlives replay ")
    again = run(*replay.split()[1:])
    assert again.status == 1
    assert "GATHER-AFTER-FREE" in again.out


def test_files_are_never_overwritten(run: Run, tmp_path: Path) -> None:
    arguments = ("check", "--scenario", "chunk-end", "--profile", "0.20.0", "--engine", "machine", "--cases", "2")
    assert run(*arguments, "--out", "mine").status == 1
    first = {path: path.read_bytes() for path in (tmp_path / "mine" / "check-0001").iterdir()}
    assert run(*arguments, "--out", "mine").status == 1
    assert (tmp_path / "mine" / "check-0002").is_dir()
    assert {path: path.read_bytes() for path in (tmp_path / "mine" / "check-0001").iterdir()} == first
    assert not (tmp_path / ".outlives").exists()


def test_the_same_run_twice_is_the_same_but_for_the_seconds(run: Run, tmp_path: Path) -> None:
    arguments = ("check", "--profile", "0.24.0", "--engine", "machine", "--cases", "70", "--property", "PROGRESS")
    both = [run(*arguments, "--seed", "7", "--out", name, "--json").object for name in ("one", "two")]
    files = [sorted((tmp_path / name / "check-0001").iterdir()) for name in ("one", "two")]
    assert [path.name for path in files[0]] == [path.name for path in files[1]]
    assert _timeless(both[0]) == _timeless(both[1])
    contents = [[_timeless(json.loads(path.read_text())) for path in paths] for paths in files]
    assert contents[0] == contents[1]


@pytest.mark.parametrize("seed", ["-5", "99999999999999999999999999"])
def test_any_whole_number_is_a_seed(seed: str, run: Run) -> None:
    done = run(*QUICK, "--seed", seed, "--json")
    assert done.status in (0, 4)
    assert str(done.object["provenance"]["seed"]) == seed


def _timeless(value: object) -> object:
    """Without seconds, rates and the folder's name."""
    if isinstance(value, dict):
        return {name: _timeless(each) for name, each in value.items() if "second" not in name and name != "memory"}
    if isinstance(value, list):
        return [_timeless(each) for each in value]
    return value.replace("two/", "one/").replace("two", "one") if isinstance(value, str) else value


def test_a_rule_outside_the_proof_makes_the_tie_unknown_and_not_a_disagreement(run: Run) -> None:
    faults = Path(__file__).parent / "faults.py"
    done = run("check", "--fault", f"{faults}:keep_references", "--engine", "proof", "--json")
    assert done.status == 3
    (tie,) = [row for row in done.object["results"] if row["engine"] == "tie"]
    assert tie["verdict"] == "unknown"
    assert tie["note"].startswith("a rule of yours does what the proof does not describe")
