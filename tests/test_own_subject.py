"""A live scheduler of one's own under pytest: the page's example, with and without its leak, and one that raises."""

import re
from pathlib import Path

import pytest
from outlives.invariants.configuration import Configuration
from outlives.invariants.pytest_saved import saved_rows, saved_traces
from outlives.invariants.testing import Subject, SubjectChoice, lifetime_machine
from outlives.invariants.userfile import load_named
from outlives.model.errors import Contradiction
from plugin_runs import Runs, pytest_runs
from toy_models import CounterModel

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "docs/examples/live_scheduler.py"
PAGE = (ROOT / "docs/own-scheduler.md").read_text(encoding="utf-8")
LIVE = """
from live_scheduler import LiveScheduler
from outlives.invariants.testing import Configuration, lifetime_machine

{more}
TestLive = lifetime_machine({subject}, configuration=Configuration(policy="fcfs", without=("sessions",)))
"""
RAISES = """
class Raises(LiveScheduler):
    def take(self, action):
        if action.name == "abort":
            raise KeyError("nobody thought of that")
        return super().take(action)
"""


@pytest.fixture
def run(tmp_path: Path) -> Runs:
    (tmp_path / "live_scheduler.py").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    return pytest_runs(tmp_path)


def live(subject: str, more: str = "") -> str:
    return LIVE.format(subject=subject, more=more)


def test_a_live_scheduler_keeps_every_property(run: Runs) -> None:
    done = run("-v", file=live("LiveScheduler()"))
    assert done.status == 0, done.out
    assert "SUBPASSED[GATHER-AFTER-FREE (machine)]" in done.out
    assert "SUBPASSED[NO-EXCEPTION (machine)]" in done.out
    assert done.summary()[0].startswith("test_it.py::TestLive::test_properties: LiveScheduler: ")


def test_a_leak_is_found_told_and_taken_again_on_the_live_object(run: Runs, tmp_path: Path) -> None:
    done = run("-q", file=live("LiveScheduler(leaks=True)"))
    assert done.status == 1
    assert "SUBFAILED[REFERENCES-MATCH (machine)] test_it.py::TestLive::test_properties" in done.out
    assert "VIOLATED REFERENCES-MATCH (machine)" in done.out
    assert "is referenced by nobody" in done.out, "the story of the built-in scheduler's states"
    saved = saved_traces(tmp_path / ".outlives")
    assert "machine-REFERENCES-MATCH.itf.json" in {path.name for path in saved}
    again = run("-q", file=live("LiveScheduler(leaks=True)"))
    assert "saved machine-REFERENCES-MATCH.itf.json (REFERENCES-MATCH) is violated again" in "".join(again.summary())
    mended = run(file=live("LiveScheduler()"))
    assert mended.status == 0, mended.out
    assert "saved counterexample" in mended.summary()[0]
    assert saved_rows(tmp_path / ".outlives", Configuration(policy="fcfs")) == ([], 0), "they are of no profile"


def test_the_pages_own_test_finds_the_leak(run: Runs) -> None:
    (shown,) = re.findall(r"^```python\n(from live_scheduler.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    done = run("-q", file=shown)
    assert done.status == 1
    assert "VIOLATED REFERENCES-MATCH (machine)" in done.out


def test_what_it_raises_is_a_violation_with_its_frame(run: Runs) -> None:
    done = run("-q", file=live("Raises()", RAISES))
    assert done.status == 1
    assert "SUBFAILED[NO-EXCEPTION (machine)]" in done.out
    assert "KeyError: 'nobody thought of that' (" in done.out
    assert "raise KeyError(" in done.out
    assert "INTERNALERROR" not in done.out


def test_the_class_is_called_by_the_schedulers_name() -> None:
    made: Subject = load_named(f"{EXAMPLE}:LiveScheduler", "subject")()
    assert not made.caches_prefixes
    assert lifetime_machine(made).__doc__ == "The lifetime machine over LiveScheduler."


RELAXED = Configuration(relax=("A1",))
OWN = load_named(f"{EXAMPLE}:LiveScheduler", "subject")


@pytest.mark.parametrize(
    ("subject", "configuration", "words"),
    [
        (OWN(), RELAXED, "a relaxed assumption is for the model: the real scheduler is what it is."),
        (OWN(), Configuration(guard="retain"), "a guard of one's own is for the model"),
        (SubjectChoice(), RELAXED, "a relaxed assumption is for the model"),
        (CounterModel(faulty=True), Configuration(), "configuration= is for a live scheduler"),
        (Configuration(), Configuration(), "configuration= is for a live scheduler"),
        (OWN, None, "a subject (start, take, observe), a Configuration or a SubjectChoice, not <class "),
    ],
    ids=["relaxed", "guard", "vLLM", "model", "configuration", "class"],
)
def test_what_makes_no_sense_is_one_sentence(subject: object, configuration: Configuration | None, words: str) -> None:
    with pytest.raises(Contradiction, match=re.escape(words)):
        lifetime_machine(subject, configuration=configuration)  # type: ignore[arg-type]
