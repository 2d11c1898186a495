"""Wheel and sdist: what is in them, and that they work once installed, with the lowest and the highest dependencies.

Those marked `packaging` build, and install into new environments for each Python that the machine has: minutes each.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = ROOT / "requirements-dev.lock"
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
HOSTS = r"https?://|\b(pypi|pythonhosted|anaconda)\.\w+|--(extra-)?index-url|--find-links|/opt/"


def interpreters() -> dict[str, Path]:
    """Version -> the interpreter of it that this machine has: those of pyenv, and on the path."""
    found: dict[str, Path] = {}
    for version in SUPPORTED:
        places = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        there = str(places[-1]) if places else shutil.which(f"python{version}")
        if there is not None:
            found[version] = Path(there)
    return found


PYTHONS = interpreters()

# --- read only --------------------------------------------------------------------------------------------------------


def test_every_package_folder_is_packaged() -> None:
    listed = set(PROJECT["tool"]["setuptools"]["package-dir"].values())
    there = {
        str(path.parent.relative_to(ROOT)) for room in ("model", "invariants") for path in (ROOT / room).rglob("*.py")
    }
    assert listed == there
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == {f"outlives.{each.replace('/', '.')}" for each in listed}


def test_licence_and_versions_are_told() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["project"]["license"] == "Apache-2.0"
    told = {each.rpartition(" ")[2] for each in PROJECT["project"]["classifiers"] if "Python :: 3." in each}
    assert told <= set(SUPPORTED)
    assert set(PYTHONS) <= told, "a Python that the tests run on is not among the classifiers"


def test_the_changelog_begins_with_this_version() -> None:
    versions = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0] == PROJECT["project"]["version"]
    assert len(set(versions)) == len(versions)


def test_the_lock_file_pins_what_development_needs_and_names_no_host() -> None:
    lock = LOCK.read_text(encoding="utf-8")
    assert re.findall(HOSTS, lock) == []
    pinned = set(re.findall(r"^([a-z0-9-]+)==[\w.]+", lock, re.MULTILINE))
    needed = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["dev"]
    assert {re.split(r"[><=]", each)[0].lower() for each in needed} <= pinned
    assert lock.count("--hash=sha256:") >= len(pinned)


# --- built and installed ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, which is built from the sdist as `python -m build` does, and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("source") / "outlives"
    left_out = shutil.ignore_patterns(".git", "build", "*.egg-info", "__pycache__", ".outlives", ".venv", ".hypothesis")
    shutil.copytree(ROOT, source, ignore=left_out)
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(folder), str(source)], check=True, capture_output=True
    )
    return folder


def _one(folder: Path, pattern: str) -> Path:
    (file,) = folder.glob(pattern)
    return file


@pytest.mark.packaging
def test_the_wheel_holds_the_code_the_licence_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(_one(built, "*.whl")) as wheel:
        names = set(wheel.namelist())
        entry = next(wheel.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    assert "[pytest11]\noutlives = outlives.invariants.pytest_plugin" in entry
    assert "outlives = outlives.invariants.command:main" in entry
    code = {name for name in names if ".dist-info/" not in name}
    there = {
        f"outlives/{path.relative_to(ROOT)}"
        for room in ("model", "invariants")
        for path in (ROOT / room).rglob("*")
        if path.suffix == ".py" or path.name == "py.typed" or (path.parent.name == "assets" and path.is_file())
    }
    assert code == there
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.packaging
def test_the_sdist_builds_without_the_clone(built: Path) -> None:
    with tarfile.open(_one(built, "*.tar.gz")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "model/lifetime.py", "invariants/command.py"} <= names


USE = """
import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.testing import lifetime_machine

TestFine = lifetime_machine(Configuration(profile="0.33.0", scenario="gap-one"), settings="quick")

@pytest.mark.outlives(profile="0.24.0", scenario="gap-one", engines=("machine", "exhaustive", "proof"))
def test_stuck(outlives):
    assert outlives.violated == {"PROGRESS"}

@pytest.mark.outlives(profile="0.24.0", scenario="gap-one", engines="exhaustive")
def test_fails(): ...

TestStuck = lifetime_machine(Configuration(profile="0.24.0", scenario="gap-one"), settings="quick")
"""
"""A user's test file: two tests hold, two fail by one property each."""


def lowest() -> list[str]:
    """The lowest versions that the project says it works with."""
    return [each.replace(">=", "==") for each in PROJECT["project"]["dependencies"]]


CASES = [("lowest", next(iter(PYTHONS))), *(("highest", version) for version in PYTHONS)] if PYTHONS else []


@pytest.mark.packaging
@pytest.mark.parametrize(("which", "version"), CASES)
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def test_it_works_where_it_is_installed(built: Path, tmp_path: Path, which: str, version: str, kind: str) -> None:
    if kind == "*.tar.gz" and (which, version) != CASES[-1]:
        pytest.skip("the sdist's wheel is the wheel; it is installed on the newest Python")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "VIRTUAL"))}

    def ran(*words: str | Path, status: int = 0) -> str:
        done = subprocess.run(words, cwd=tmp_path, env=plain, capture_output=True, text=True, check=False)
        assert done.returncode == status, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    place = tmp_path / "venv"
    ran(PYTHONS[version], "-m", "venv", place)
    more = lowest() if which == "lowest" else ["--upgrade", "--upgrade-strategy", "eager"]
    ran(place / "bin/pip", "install", "--quiet", _one(built, kind), *more)
    assert "outlives" in ran(place / "bin/outlives", "doctor")
    ran(place / "bin/outlives", "check", "--scenario", "gap-one", "--settings", "quick")
    ran(place / "bin/outlives", "prove")
    (tmp_path / "test_use.py").write_text(USE, encoding="utf-8")
    page = ["--scenario", "gap-one", "--engine", "exhaustive", "--format", "html"]
    assert "</html>" in ran(place / "bin/outlives", "check", *page), "the page's own files are installed too"

    def tested() -> set[str]:
        """The subtests that failed."""
        told = ran(place / "bin/pytest", "-p", "no:cacheprovider", status=1)
        assert re.search(r"\b2 passed\b", told)
        assert "VIOLATED PROGRESS" in told
        assert {"test_fails", "TestStuck::test_properties"} <= set(re.findall(r"test_use.py::(\S+)", told))
        return set(re.findall(r"\[((?:saved|PROGRESS|GATHER)[^]\n]*)\]", told))

    apart = {"PROGRESS (exhaustive)", "PROGRESS (machine)"}
    if which == "highest":
        assert tested() == apart, "pytest has subtests of its own"
        return
    assert tested() == set(), "one failure lists everything"
    ran(place / "bin/pip", "install", "--quiet", "pytest-subtests", *more)
    again = tested()
    assert apart < again, "those of pytest-subtests"
    (saved,) = again - apart
    assert re.fullmatch(r"saved \w+-PROGRESS\.itf\.json \(PROGRESS\)", saved), "and what the run before saved, once"


@pytest.mark.packaging
def test_a_newcomer_with_the_readme_soon_reads_a_counterexample(tmp_path: Path) -> None:
    """The commands as they stand, in a copy of the clone. CPU time: other work on the machine is not ours."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    first, second = blocks[0], next(block for block in blocks if "--scenario chunk-end" in block)
    left_out = shutil.ignore_patterns(".git", "build", "*.egg-info", "__pycache__", ".outlives", ".venv", ".hypothesis")
    shutil.copytree(ROOT, tmp_path / "outlives", ignore=left_out)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "VIRTUAL"))}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = []
    for block in (first, second):
        done = subprocess.run(
            ["bash", "-c", block], cwd=tmp_path / "outlives", env=plain, capture_output=True, text=True
        )
        said.append((done.returncode, done.stdout))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert [status for status, _ in said] == [0, 1], said
    shown = next(block for block in re.findall(r"^```text\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
                 if block.startswith("VIOLATED GATHER-AFTER-FREE"))  # fmt: skip
    for line in shown.split("\n\n")[1].splitlines():
        assert line in said[1][1], "the README shows what is printed"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 180
