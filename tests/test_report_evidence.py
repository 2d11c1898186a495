"""Proofs and real source in the reports: each obligation and each method is there, in text and in JSON."""

import io
import json
from pathlib import Path

from outlives.invariants.proof.life import Assumed, Terms
from outlives.invariants.proof.theorem import prove
from outlives.invariants.report.reporter import reporter_for
from outlives.invariants.report.tables import proof_table
from outlives.invariants.source import prove_source
from outlives.model.lifetime import GUARDS
from source_snippets import CONFIRMED, releasing, write


def test_a_proof_is_a_grid_with_one_mark_per_obligation() -> None:
    report = prove(Terms(guard=GUARDS["confirmed"], assumed=Assumed()))
    table = proof_table(report)
    marks = [mark for line in table.rows for mark in line[1:] if mark]
    assert len(marks) == len(report.obligations)
    assert set(marks) == {"+"}
    assert "Proof by induction: proved" in table.title
    out = io.StringIO()
    reporter = reporter_for(out=out, err=io.StringIO())
    reporter.proof(report)
    assert max(len(line) for line in out.getvalue().splitlines()) <= 100
    out = io.StringIO()
    reporter = reporter_for(as_json=True, out=out, err=io.StringIO())
    reporter.proof(report)
    reporter.finish(0)
    proof = json.loads(out.getvalue())["proofs"][0]
    assert [each["verdict"] for each in proof["obligations"]] == ["proved"] * len(report.obligations)


def test_a_failed_obligation_is_told_with_its_numbers() -> None:
    report = prove(Terms(guard=GUARDS["optimistic-at-output"], assumed=Assumed()))
    told = [line for line in proof_table(report).legend if "is violated" in line]
    assert len(told) == len(report.failed) > 0
    assert "computed" in told[0]


def test_source_files_are_told_per_method(tmp_path: Path) -> None:
    write(tmp_path, releasing("end <= request.num_computed_tokens"), "early.py")
    write(tmp_path, releasing(CONFIRMED), "right.py")
    report = prove_source([tmp_path / "early.py", tmp_path / "right.py"])
    out = io.StringIO()
    reporter_for(out=out, err=io.StringIO()).source(report)
    text = out.getvalue()
    assert "does not imply confirmed: an item" in text
    assert "Exit status 1: a method releases an item that a rejection can still take back." in text
    assert text.count("implies confirmed: for all numbers") == 1
    assert max(len(line) for line in text.splitlines()) <= 100
    out = io.StringIO()
    reporter = reporter_for(as_json=True, out=out, err=io.StringIO())
    reporter.source(report)
    reporter.finish(report.exit_status)
    assert [file["verdict"] for file in json.loads(out.getvalue())["source"]["files"]] == ["violated", "proved"]
