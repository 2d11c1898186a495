"""Numbers and modes at the edge, through the command: each either works or is refused with one sentence."""

import json
from pathlib import Path

import pytest
from command_runs import Run, runner
from outlives.invariants.trace_file import trace_bytes
from trace_samples import miss_trace


@pytest.fixture(name="run")
def _run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


WORKS = {
    "sessions without items": ("--turns", "2", "--items", "0"),
    "many turns": ("--turns", "2..4", "--requests", "3"),
    "zero drafts": ("--drafts", "0"),
    "zero look-ahead": ("--look-ahead", "0"),
    "far look-ahead": ("--look-ahead", "4"),
    "depth 1": ("--depth", "1"),
    "budget 1": ("--budget", "1"),
    "budget 1 with drafts and turns": ("--budget", "1", "--drafts", "3", "--turns", "2"),
    "a slot": ("--slots", "1"),
    "encoder budget 1": ("--encoder-budget", "1"),
    "synchronous, one stage": ("--synchronous", "--depth", "1"),
    "synchronous, three stages": ("--synchronous", "--depth", "3", "--drafts", "2"),
    "diffusion, any drafts": ("--diffusion", "--drafts", "0..2"),
    "diffusion, synchronous": ("--diffusion", "--synchronous"),
    "encoder-decoder, a slot": ("--encoder-decoder", "--slots", "1"),
    "encoder-decoder, some turns": ("--encoder-decoder", "--turns", "1..2"),
    "items anywhere, turns": ("--items-anywhere", "--turns", "2"),
    "both policies": ("--policy", "both", "--requests", "3"),
    "priority": ("--policy", "priority", "--turns", "2"),
    "any arrivals": ("--policy", "fcfs", "--arrivals", "any", "--turns", "2"),
    "one turn and no session": ("--turns", "1", "--without", "sessions"),
}


@pytest.mark.parametrize("name", WORKS)
def test_it_works(name: str, run: Run) -> None:
    """Few runs: nothing is violated, and requests arrive and are served."""
    said = run("check", *WORKS[name], "--engine", "machine", "--cases", "4", "--settings", "quick", "--json")
    report = said.object
    assert (said.status in (0, 4), report["violations"], said.err) == (True, [], "")
    fired = report["provenance"]["actions fired"]
    assert fired["arrive"] > 0
    assert fired["schedule"] > 0


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("depth 1", "many-drafts"),
        ("budget 1", "many-drafts"),
        ("zero drafts", "second-turn"),
        ("synchronous, one stage", "one-stage"),
        ("diffusion, any drafts", "diffusion"),
        ("encoder-decoder, some turns", "encoder-decoder"),
    ],
)
def test_it_works_for_every_state_of_a_named_scope(name: str, scope: str, run: Run) -> None:
    """What a mode never does, such as promising in synchronous scheduling, is vacuous there; all else is judged."""
    said = run("explore", *WORKS[name], "--scope", scope, "--json")
    assert (said.status in (0, 4), said.object["violations"]) == (True, [])
    verdicts = {row["property"]: row["verdict"] for row in said.object["results"]}
    assert set(verdicts.values()) <= {"exhausted", "vacuous"}
    assert {verdicts["GATHER-AFTER-FREE"], verdicts["PROGRESS"]} == {"exhausted"}


@pytest.mark.parametrize("options", [("--slots", "0"), ("--slots", "0", "--encoder-decoder")])
def test_items_that_can_never_fit_never_arrive(options: tuple[str, ...], run: Run) -> None:
    """Capacity 0, and every request has an item: the run says that it saw nothing."""
    said = run(
        "check", *options, "--items", "1", "--engine", "machine", "--cases", "4", "--settings", "quick", "--json"
    )
    assert said.status == 4
    assert {row["verdict"] for row in said.object["results"]} == {"vacuous"}
    assert "action arrive never fired" in said.object["not_reached"]
    none = run("check", "--slots", "0", "--items", "0", "--engine", "machine", "--cases", "4", "--settings", "quick")
    assert none.status == 4
    assert "action arrive never fired" not in none.out


REFUSED = {
    "diffusion without drafts": (
        ("--diffusion", "--drafts", "0"),
        "--diffusion and --drafts 0 contradict: a diffusion model samples nothing beside its drafts",
    ),
    "diffusion before there was any": (("--diffusion", "--profile", "0.20.0"), "--diffusion: profile 0.20.0 knows no"),
    "two kinds of model": (("--diffusion", "--encoder-decoder"), "--encoder-decoder and --diffusion contradict"),
    "encoder-decoder, items anywhere": (
        ("--encoder-decoder", "--items-anywhere"),
        "--encoder-decoder and --items-anywhere contradict",
    ),
    "encoder-decoder, two turns": (
        ("--encoder-decoder", "--turns", "2"),
        "--encoder-decoder and --turns of more than 1",
    ),
    "encoder-decoder before its manager": (
        ("--encoder-decoder", "--profile", "0.12.0"),
        "--encoder-decoder: profile 0.12.0 has no cache manager",
    ),
    "turns without sessions": (
        ("--turns", "2", "--without", "sessions"),
        "--without sessions and --turns of more than 1",
    ),
    "turns before sessions": (("--turns", "2", "--profile", "0.13.0"), "--turns of more than 1: profile 0.13.0 has no"),
    "no turn": (("--turns", "0"), "--turns is 0; it must be from 1 to 4."),
    "five turns": (("--turns", "1..5"), "--turns is 5; it must be from 1 to 4."),
    "a mode in a scenario": (
        ("--scenario", "gap-one", "--synchronous"),
        "scenario gap-one is about the usual mode; drop",
    ),
    "an unknown policy": (("--policy", "lifo"), "unknown policy 'lifo'. Known: fcfs, priority, both."),
    "a value for a mode": (("--synchronous=yes",), "argument --synchronous: ignored explicit argument 'yes'"),
}


@pytest.mark.parametrize("command", ["check", "explore"])
@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_one_sentence(name: str, command: str, run: Run) -> None:
    options, sentence = REFUSED[name]
    said = run(command, *options)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"outlives: {sentence}")
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("mode", ["--synchronous", "--diffusion", "--encoder-decoder"])
def test_a_mode_of_which_the_proof_does_not_speak_is_refused(mode: str, run: Run) -> None:
    said = run("prove", mode)
    assert (said.status, said.out) == (2, "")
    assert f"the proof is of asynchronous scheduling, diffusion or not, and of decoder models; drop {mode} " in said.err


@pytest.mark.parametrize(
    ("options", "left_out"),
    [
        (("--synchronous",), "property PLACEHOLDERS-KEPT: it is about outputs that are promised"),
        pytest.param(("--diffusion",), "other modes: plain, synchronous, encoder-decoder", marks=pytest.mark.campaign),
        pytest.param(
            ("--diffusion", "--synchronous"), "other modes: plain, encoder-decoder", marks=pytest.mark.campaign
        ),
        (("--encoder-decoder",), "route sessions: closed"),
        pytest.param(
            ("--items-anywhere",),
            "property PROGRESS: it is about prompts: items among outputs, which no release has, can "
            "hold each other's room",
            marks=pytest.mark.campaign,
        ),
        pytest.param(
            ("--items-anywhere", "--diffusion"), "other item positions than anywhere", marks=pytest.mark.campaign
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_each_mode_alone_is_checked_whole(options: tuple[str, ...], left_out: str, run: Run) -> None:
    """Every engine that speaks of the mode answers, nothing is vacuous, and what says nothing of it is named."""
    said = run("check", *options, "--json", "--cases", "300")
    report = json.loads(said.out)
    assert said.status == 0, {row["property"]: row["verdict"] for row in report["results"]}
    assert left_out in report["not_covered"]
    assert ("proof" in {row["engine"] for row in report["results"]}) is (options != ("--encoder-decoder",))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("check", "--property", "PROGRESS", "--engine", "proof"), "the proof is of GATHER-AFTER-FREE alone"),
        (("explore", "--property", "NO-EXCEPTION"), "NO-EXCEPTION is asked of a real scheduler"),
        (("explore", "--seconds", "0"), "the bound on seconds is 0; it must be above 0"),
        (("check", "--settings", "none"), "unknown settings 'none'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_no_engine_would_answer_is_refused(arguments: tuple[str, ...], sentence: str, run: Run) -> None:
    said = run(*arguments)
    assert (said.status, said.out) == (2, "")
    assert sentence in said.err


def test_of_an_encoder_decoder_model_nothing_is_proved(run: Run) -> None:
    reason = "the proof is of decoder models, whose requests share entries"
    report = json.loads(run("check", "--encoder-decoder", "--engine", "exhaustive", "--engine", "proof", "--json").out)
    assert {row["engine"] for row in report["results"]} == {"exhaustive"}
    assert f"engine proof: {reason}" in report["not_covered"]
    alone = run("check", "--encoder-decoder", "--engine", "proof")
    assert (alone.status, alone.out) == (2, "")
    assert reason in alone.err


def test_a_trace_with_a_key_of_two_sizes_is_refused(run: Run, tmp_path: Path) -> None:
    """The book books one size for a key; releases up to 0.30 then lose or gain slots, which is not modelled."""
    root = json.loads(trace_bytes(*miss_trace()))
    (item,) = root["#meta"]["setup"]["requests"][0]["items"]
    root["#meta"]["setup"]["requests"][0]["items"] = [item, {**item, "start": 6, "size": 1}]
    path = tmp_path / "two.itf.json"
    path.write_text(json.dumps(root))
    said = run("replay", path)
    assert (said.status, said.out) == (2, "")
    assert "r0, item1 [6,8) takes 1 slots, but its key took 2 before." in said.err
    assert len(said.err.splitlines()) == 1
