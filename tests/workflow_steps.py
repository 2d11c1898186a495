"""The steps of a workflow file, run as a runner would run them: only the `run:` lines, in a clean environment.

Belongs here: reading the file, the few expressions that its steps use, and the environment of a step. What is an action
of somebody else (`uses:`) is not run.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

__all__ = ["RunnerMachine", "Stepped", "read_workflow"]

_KEPT = ("PIP_", "SSL_", "REQUESTS_", "HTTP", "http", "HTTPS", "https", "NO_PROXY", "no_proxy", "LANG")
"""What a clean environment keeps: how packages are reached."""


def read_workflow(path: Path) -> dict[str, Any]:
    """The file as data; YAML reads its key `on` as true, which is set right."""
    root: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    if True in root:
        root["on"] = root.pop(True)
    return root


class Stepped(NamedTuple):
    """What a step answered."""

    name: str
    status: int
    out: str


class RunnerMachine:
    """A folder for the checkout, one for temporary files, and what the steps have said so far."""

    def __init__(self, folder: Path, inputs: Mapping[str, str], python: Path) -> None:
        self.workspace = folder / "workspace"
        self.temporary = folder / "temp"
        self.summary = folder / "summary.md"
        for each in (self.workspace, self.temporary, folder / "home"):
            each.mkdir()
        self._inputs = inputs
        self._outputs: dict[str, dict[str, str]] = {}
        kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
        self._environment = {
            **kept,
            "PATH": f"{python.parent}:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
        }

    def value(self, text: str) -> str:
        """The text with its expressions worked out; one that is not known is an error."""

        def worked_out(found: re.Match[str]) -> str:
            words = found[1].strip().split(".")
            if words[0] == "inputs":
                return self._inputs[words[1]]
            if words[0] == "steps" and words[2] == "outputs":
                return self._outputs[words[1]].get(words[3], "")
            if found[1].strip() == "runner.temp":
                return str(self.temporary)
            raise KeyError(found[1])

        return re.sub(r"\$\{\{(.*?)\}\}", worked_out, text)

    def run(self, step: Mapping[str, Any]) -> Stepped:
        """Run a step's script with `bash --noprofile --norc -eo pipefail`, as `shell: bash` does."""
        assert "${{" not in step["run"], "an expression inside a script is an injection"
        outputs = self.temporary / "outputs"
        outputs.write_text("", encoding="utf-8")
        environment = {name: self.value(str(value)) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env={**self._environment, **environment, "GITHUB_OUTPUT": str(outputs)},
            capture_output=True,
            text=True,
            check=False,
        )
        if "id" in step:
            lines = outputs.read_text(encoding="utf-8").splitlines()
            self._outputs[step["id"]] = dict(line.partition("=")[::2] for line in lines)
        return Stepped(step["name"], done.returncode, done.stdout + done.stderr)
