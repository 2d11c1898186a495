"""`[tool.outlives]` of the nearest pyproject.toml: what the command takes, who wins, and how mistakes are told."""

import re
from pathlib import Path

import pytest
from command_runs import Run, runner
from hypothesis import settings as hypothesis_profile
from hypothesis.database import DirectoryBasedExampleDatabase, MultiplexedDatabase, ReadOnlyDatabase
from outlives.invariants.command import _parser
from outlives.invariants.machine_database import layered_database
from outlives.invariants.machine_settings import MACHINE_PROFILES, register_profiles
from outlives.invariants.project import KEYS, lines_of_keys, read_project
from outlives.invariants.project_options import _WITHOUT_OPTION, filled


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def options_of(command: str) -> dict[str, object]:
    return vars(filled(_parser(), command.split())[0])


# --- what is taken ----------------------------------------------------------------------------------------------------

EVERYTHING = """
[tool.outlives]
profile = "own/my.py:mine"
guard = "retain"
relax = ["A1", "A3"]
without = "abort,sessions"
settings = "nightly"
seed = 7
out = "runs"
known = "known.json"
engine = ["machine"]
workers = 2
slots = "2..6"
look-ahead = 1
report = "reports"
"""


def test_every_key_reaches_its_option(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(EVERYTHING, encoding="utf-8")
    taken = options_of("check")
    assert {name: taken[name] for name in ("profile", "guard", "relax", "without", "settings", "seed")} == {
        "profile": "own/my.py:mine",
        "guard": "retain",
        "relax": "A1,A3",
        "without": ["abort", "sessions"],
        "settings": "nightly",
        "seed": 7,
    }
    assert (taken["out"], taken["known"], taken["engine"], taken["workers"]) == ("runs", "known.json", ["machine"], 2)
    assert (taken["slots"], taken["look_ahead"], taken["drafts"]) == ("2..6", "1", None)


def test_what_is_typed_wins(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(EVERYTHING, encoding="utf-8")
    taken = options_of("check --profile repaired --without preempt --settings ci --seed 0 --relax A2 --slots 3")
    assert (taken["profile"], taken["without"], taken["settings"]) == ("repaired", ["preempt"], "ci")
    assert (taken["seed"], taken["relax"], taken["slots"], taken["guard"]) == (0, "A2", "3", "retain")


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("replay trace.itf.json", ("profile", "guard", "relax")),
        ("explain trace.itf.json", ("profile", "guard", "relax")),
        ("prove --source x.py", ("profile", "guard", "relax")),
        ("check --scenario gap-one", ("slots", "look_ahead")),
        ("check --subject vllm", ("engine", "profile", "guard")),
    ],
)
def test_a_key_is_left_where_the_command_has_no_room_for_it(
    run: Run, tmp_path: Path, command: str, left: tuple[str, ...]
) -> None:
    (tmp_path / "pyproject.toml").write_text(EVERYTHING, encoding="utf-8")
    taken = options_of(command)
    assert all(taken[name] is None for name in left)


def test_without_a_file_the_defaults_hold(run: Run) -> None:
    taken = options_of("check")
    assert (taken["settings"], taken["seed"], taken["profile"], taken["without"]) == ("ci", 0, None, None)


def test_the_nearest_file_counts_and_paths_are_its_own(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(EVERYTHING, encoding="utf-8")
    inner = tmp_path / "inner" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert options_of("check")["known"] == "../../known.json"
    assert options_of("check")["profile"] == "../../own/my.py:mine"
    (tmp_path / "inner" / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    assert options_of("check")["known"] is None


def test_a_run_takes_its_question_from_the_file(run: Run, tmp_path: Path) -> None:
    text = '[tool.outlives]\nprofile = "0.24.0"\nscenario = "gap-one"\nengine = "exhaustive"\nout = "runs"\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    said = run("check")
    assert said.status == 1
    assert "profile 0.24.0, guard confirmed-lookahead, A1-A4, scenario gap-one" in said.out
    assert (tmp_path / "runs" / "check-0001").is_dir()


def test_reports_of_the_project_are_filed_and_the_text_is_still_printed(run: Run, tmp_path: Path) -> None:
    text = '[tool.outlives]\nformats = ["junit", "markdown"]\nout = "runs"\nscenario = "gap-one"\n'
    text += 'engine = "exhaustive"\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    said = run("check")
    assert said.out.startswith("profile repaired, ")
    assert {path.name for path in (tmp_path / "runs/check-0001").iterdir()} == {"report.xml", "report.md"}
    assert run("check", "--json").object["exit_status"] == 0
    assert len(list((tmp_path / "runs/check-0002").iterdir())) == 2


def test_a_format_that_is_typed_is_printed_wherever_the_projects_folder_is(run: Run, tmp_path: Path) -> None:
    text = '[tool.outlives]\nformats = "junit"\nout = "runs"\nscenario = "gap-one"\nengine = "exhaustive"\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert run("check", "--format", "markdown").out.startswith("#")
    assert not list((tmp_path / "runs/check-0001").iterdir())
    run("check", "--format", "markdown", "--out", "there")
    assert [path.name for path in (tmp_path / "there/check-0001").iterdir()] == ["report.md"]


# --- sweeps -----------------------------------------------------------------------------------------------------------

SWEPT = """
[tool.outlives]
out = "runs"
formats = "markdown"
workers = 1
profile = "0.24.0"
settings = "nightly"
"""


def test_a_sweep_takes_who_works_and_where_files_go_and_not_what_is_asked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(SWEPT, encoding="utf-8")
    (tmp_path / "s.toml").write_text("scopes = ['last-chunk']\n", encoding="utf-8")
    taken = options_of("sweep s.toml")
    assert (taken["out"], taken["workers"], taken["executor"]) == ("runs", 1, None)
    said = run("sweep", "s.toml")
    assert said.status == 0
    assert "repaired" in said.out
    assert "0.24.0" not in said.out, "what is asked stands in the specification"
    folder = tmp_path / "runs/sweep-0001"
    assert "repaired" in (folder / "report.md").read_text(encoding="utf-8")
    assert options_of(f"sweep --resume {folder}")["out"] is None


CLUSTER = '[tool.outlives]\nexecutor = "dask:tcp://127.0.0.1:1"\nworkers = 2\n'


@pytest.mark.parametrize(
    ("typed", "executor", "workers"),
    [
        ("", "dask:tcp://127.0.0.1:1", None),
        ("--workers 3", None, 3),
        ("--executor processes", "processes", 2),
        ("--executor dask:tcp://there:2", "dask:tcp://there:2", None),
    ],
)
def test_a_cluster_of_the_project_has_its_own_workers(
    run: Run, tmp_path: Path, typed: str, executor: str | None, workers: int | None
) -> None:
    (tmp_path / "pyproject.toml").write_text(CLUSTER, encoding="utf-8")
    taken = options_of(f"sweep s.toml {typed}")
    assert (taken["executor"], taken["workers"]) == (executor, workers)
    assert options_of("check")["workers"] == 2


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('executor = "threads"', "[tool.outlives], executor: unknown executor 'threads'. Known: processes, dask:ADDR"),
        ('executor = "dask:"', "[tool.outlives], executor: --executor dask:"),
        ("executor = 2", "[tool.outlives], executor is 2; it must be a text."),
        ('formats = "pdf"', "[tool.outlives], formats: unknown format 'pdf'. Known: terminal, "),
        ('slots = "5..2"', "[tool.outlives], slots: --slots 5..2: the range ends below its beginning; write 2..5."),
        ("workers = -1", "[tool.outlives], workers: --workers is -1"),
        ("specs = 1", "[tool.outlives]: unknown key 'specs'. Known: "),
    ],
)
def test_a_mistake_of_the_projects_is_told_to_who_sweeps(run: Run, tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.outlives]\n{line}\n", encoding="utf-8")
    (tmp_path / "s.toml").write_text("scopes = ['last-chunk']\n", encoding="utf-8")
    said = run("sweep", "s.toml")
    assert (said.status, said.out) == (2, "")
    assert sentence in said.err
    assert said.err.startswith(f"outlives: {tmp_path / 'pyproject.toml'}, ")
    assert len(said.err.splitlines()) == 1
    assert not (tmp_path / ".outlives").exists()


# --- mistakes ---------------------------------------------------------------------------------------------------------

MISTAKES = (
    ('profle = "x"', "[tool.outlives]: unknown key 'profle'. Did you mean 'profile'? Known: profile, "),
    ('seed = "x"', "[tool.outlives], seed is 'x'; it must be a whole number."),
    ("seed = 1.5", "[tool.outlives], seed is 1.5; it must be a whole number."),
    ("profile = 3", "[tool.outlives], profile is 3; it must be a text."),
    ('profile = ""', "[tool.outlives], profile is ''; it must be a text."),
    ("relax = [1]", "[tool.outlives], relax is [1]; it must be a text, or an array of texts."),
    ('replay = "no"', "[tool.outlives], replay is 'no'; it must be true or false."),
    ("slots = [1]", '[tool.outlives], slots is [1]; it must be a whole number, or a text "LOW..HIGH".'),
    ('profile = "0.24"', "[tool.outlives], profile: unknown profile '0.24'. Did you mean '0.24.0'?"),
    ('without = ["abort", "a1"]', "[tool.outlives], without: unknown route 'a1'."),
    ('settings = "fast"', "[tool.outlives], settings: unknown settings 'fast'."),
    ('engine = "z3"', "[tool.outlives], engine: unknown engine 'z3'."),
    ('slots = "many"', "[tool.outlives], slots: --slots 'many' is neither a number nor a range LOW..HIGH."),
    ('slots = "5..2"', "[tool.outlives], slots: --slots 5..2: the range ends below its beginning; write 2..5."),
    ("workers = -1", "[tool.outlives], workers: --workers is -1"),
    ('known = "none.json"', "[tool.outlives], known: --known none.json: there is no such file"),
    ('profile = "none.py:x"', "[tool.outlives], profile: --profile none.py:x: there is no file none.py."),
    ('database = "nowhere"', "[tool.outlives], database: there is no folder nowhere."),
    ('artifacts = "x"', "[tool.outlives], artifacts: 'x' is no OWNER/REPOSITORY"),
    ("seed = ", " is not TOML: Invalid value"),
)


@pytest.mark.parametrize(("line", "sentence"), MISTAKES, ids=lambda each: each[:30])
def test_a_mistake_is_one_sentence_with_file_and_key(run: Run, tmp_path: Path, line: str, sentence: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool.outlives]\n{line}\n", encoding="utf-8")
    said = run("check")
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"outlives: {file}")
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["check --scenario gap-one", "prove", "table"])
def test_a_range_that_is_none_is_told_whoever_reads_the_file(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.outlives]\nslots = "5..2"\n', encoding="utf-8")
    said = run(*command.split())
    assert (said.status, said.out) == (2, "")
    assert "line 2, [tool.outlives], slots: --slots 5..2: the range ends below its beginning" in said.err


def test_the_line_of_a_key_is_that_of_its_own_section(run: Run, tmp_path: Path) -> None:
    text = (
        '[project]\nseed = 1\n\n[tool.outlives] # ours\n# seed = 2\nguard = "retain"\n"seed" = "x"\n[other]\nseed = 4\n'
    )
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert "pyproject.toml, line 7, [tool.outlives], seed is 'x'" in run("check").err
    assert lines_of_keys("a = 1\nb = [\n  'c',\n]\n[t]\na = 2\n") == {"a": 1, "b": 2}
    (tmp_path / "pyproject.toml").write_text("tool.outlives.seed = 'x'\n", encoding="utf-8")
    assert "pyproject.toml, [tool.outlives], seed is 'x'" in run("check").err, "no line where none can be told"


def test_a_section_that_is_no_table_is_one_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool.outlives = 3\n", encoding="utf-8")
    assert run("check").err == f"outlives: {tmp_path / 'pyproject.toml'}: [tool.outlives] must be a table.\n"


def test_a_mistake_on_the_command_line_is_not_blamed_on_the_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.outlives]\nguard = "retain"\n', encoding="utf-8")
    assert run("check", "--profile", "0.24").err.startswith("outlives: unknown profile '0.24'.")


def test_a_file_of_others_is_no_business_of_ours(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n", encoding="utf-8")  # not TOML, but nothing of ours either
    assert read_project(tmp_path).values == {}


def test_the_page_shows_keys_that_there_are(run: Run, tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parent.parent / "docs/ci.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```toml\n(\[tool\.outlives\]\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(shown, encoding="utf-8")
    assert read_project(tmp_path).values
    (comment,) = re.findall(r"# (requests, turns.*), \.\.\.\n", shown)
    assert set(comment.split(", ")) <= set(KEYS)


def test_every_key_has_an_option_or_is_the_plugins() -> None:
    from outlives.invariants.pytest_options import OPTIONS

    plugins = {name for name, *_ in OPTIONS} | {"replay"}
    for name, key in KEYS.items():
        for command in key.commands:
            assert name.replace("-", "_") in vars(_parser().parse_args([command])) or name in _WITHOUT_OPTION
        assert key.commands or name in plugins


# --- Hypothesis -------------------------------------------------------------------------------------------------------


def test_databases_lie_in_layers(tmp_path: Path) -> None:
    assert layered_database(None) is None
    assert isinstance(layered_database(tmp_path), DirectoryBasedExampleDatabase)
    both = layered_database(tmp_path, "owner/scheduler")
    assert isinstance(both, MultiplexedDatabase)
    local, shared = both._wrapped
    assert isinstance(local, DirectoryBasedExampleDatabase)
    assert isinstance(shared, ReadOnlyDatabase)
    assert "owner='owner', repo='scheduler', artifact_name='outlives-examples'" in repr(shared)


def test_what_fails_is_kept_in_the_folder_and_nothing_is_written_to_the_artifacts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hypothesis.database import GitHubArtifactDatabase

    shared = b"shared"
    monkeypatch.setattr(GitHubArtifactDatabase, "fetch", lambda self, key: iter([shared]))
    both = layered_database(tmp_path, "owner/scheduler")
    assert both is not None
    both.save(b"key", b"own")
    assert set(both.fetch(b"key")) == {b"own", shared}
    alone = layered_database(tmp_path)
    assert alone is not None
    assert set(alone.fetch(b"key")) == {b"own"}


def test_profiles_are_registered_by_name() -> None:
    register_profiles()
    for name, chosen in MACHINE_PROFILES.items():
        made = hypothesis_profile.get_profile(f"outlives-{name}")
        assert (made.max_examples, made.stateful_step_count) == (chosen.cases, chosen.steps)
        assert made.database is not None
