"""The real scheduler where there is none, or a broken one: one sentence, and exit status 2."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

BROKEN = {
    "raise RuntimeError('no libcuda.so')": "this vLLM cannot be used: RuntimeError: no libcuda.so",
    "import sys; sys.exit(3)": "this vLLM cannot be used: SystemExit: 3",
    "import a_module_that_nobody_has": "no module named 'a_module_that_nobody_has'",
}


def said(folder: Path, *command: str, path: Path | None = None) -> tuple[int, str, str]:
    paths = [str(path)] if path is not None else []
    paths += filter(None, [os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "outlives.invariants.command", *command],
        cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, " ".join(done.stderr.split())


@pytest.mark.parametrize("command", [("check", "--subject", "vllm"), ("conform",)])
def test_without_vllm_it_is_vllm_that_is_missing(tmp_path: Path, command: tuple[str, ...]) -> None:
    found = find_spec("vllm")
    if found is not None and found.origin is not None:  # a folder of that name alone is no package
        pytest.skip("vLLM is installed here")
    status, out, err = said(tmp_path, *command)
    assert (status, out) == (2, "")
    assert "vLLM cannot be imported here: no module named 'vllm'. Install vLLM beside outlives" in err


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_vllm_is_one_sentence(tmp_path: Path, line: str) -> None:
    package = tmp_path / "broken" / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(line + "\n")
    status, out, err = said(tmp_path, "check", "--subject", "vllm", path=package.parent)
    assert (status, out) == (2, "")
    assert BROKEN[line] in err


def test_a_trace_that_no_real_scheduler_can_be_asked_is_refused_before_one_is_loaded(tmp_path: Path) -> None:
    package = tmp_path / "loud" / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"open({str(tmp_path / 'loaded')!r}, 'w')\n")
    trace = Path(__file__).parent / "regressions" / "2026-11-30-settled-a1.itf.json"
    status, out, err = said(tmp_path, "replay", str(trace), "--subject", "vllm", path=package.parent)
    assert (status, out) == (2, "")
    assert err.endswith("cannot be asked of a real scheduler: it relaxes A1, which a real scheduler does not.")
    assert not (tmp_path / "loaded").exists()
