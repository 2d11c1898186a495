"""Paths and files that cannot be judged: one clear sentence each, and the exit status that it deserves."""

import os
from pathlib import Path

import pytest
from outlives.invariants.source import BadSource, NoSuchMethod, prove_source
from outlives.invariants.source.files import LARGEST_FILE
from outlives.invariants.verdict import Verdict
from source_snippets import CONFIRMED, judged, releasing, write


def test_a_missing_path_an_empty_list_and_an_impossible_name(tmp_path: Path) -> None:
    with pytest.raises(BadSource, match=r"nowhere\.py does not exist"):
        prove_source([tmp_path / "nowhere.py"])
    with pytest.raises(BadSource, match="no source was given"):
        prove_source([])
    with pytest.raises(BadSource) as odd:
        prove_source(["a\0b"])
    assert str(odd.value).isprintable()
    with pytest.raises(BadSource, match="cannot be looked at"):
        prove_source(["x" * 5000])


def test_a_folder_without_a_scheduler(tmp_path: Path) -> None:
    write(tmp_path, releasing(CONFIRMED))
    with pytest.raises(BadSource, match="holds no vLLM scheduler"):
        prove_source([tmp_path])


@pytest.mark.parametrize("given", ["", "vllm", "vllm/v1", "vllm/v1/core", "vllm/v1/core/sched"])
def test_a_package_folder_is_found_at_each_level(tmp_path: Path, given: str) -> None:
    place = tmp_path / "vllm" / "v1" / "core" / "sched"
    place.mkdir(parents=True)
    write(place, releasing(CONFIRMED))
    write(place, "class Other:\n    pass\n", "interface.py")
    report = prove_source([tmp_path / given])
    assert [Path(file.file).name for file in report.files] == ["interface.py", "scheduler.py"]
    assert [file.verdict for file in report.files] == [None, Verdict.PROVED]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\x00\x00", "zero bytes"),
        (b"\xff\xfe\xfa", "can be parsed"),
        (b"def broken(:\n", "at line 1"),
        (b"x = " + b"(" * 3000 + b")" * 3000, "cannot be parsed|can be parsed"),
        (b"x = " + b"-" * 200_000 + b"1", "cannot be parsed|can be parsed"),
        (b"x = " + b"1 + " * 20_000 + b"1", "cannot be parsed|can be parsed"),
        (b"#" * (LARGEST_FILE + 1), "at most"),
    ],
)
def test_a_file_that_is_no_python_source(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "scheduler.py"
    path.write_bytes(content)
    with pytest.raises(BadSource, match=message):
        prove_source([path])


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(BadSource, match="neither a file nor a folder"):
        prove_source([tmp_path / "pipe.py"])


def test_files_without_the_method(tmp_path: Path) -> None:
    other = write(tmp_path, "class Scheduler:\n    pass\n", "other.py")
    with pytest.raises(NoSuchMethod, match="has a method _free_encoder_inputs"):
        prove_source([other])
    report = prove_source([other, write(tmp_path, releasing(CONFIRMED))])
    assert [file.verdict for file in report.files] == [None, Verdict.PROVED]


def test_the_worst_method_gives_the_exit_status(tmp_path: Path) -> None:
    good = write(tmp_path, releasing(CONFIRMED), "good.py")
    early = write(tmp_path, releasing("end <= request.num_computed_tokens"), "early.py")
    unknown = write(tmp_path, releasing("end <= request.mystery"), "unknown.py")
    for paths, status in (([good], 0), ([good, unknown], 3), ([good, unknown, early], 1)):
        report = prove_source(paths)
        assert report.exit_status == status
        assert len(report.results) == len(paths)


def test_the_worst_method_of_a_file_gives_its_verdict(tmp_path: Path) -> None:
    early = releasing("end <= request.num_computed_tokens").replace("class Scheduler", "class Early")
    (file,) = prove_source([write(tmp_path, releasing(CONFIRMED) + early)]).files
    assert [method.owner for method in file.methods] == ["Scheduler", "Early"]
    assert file.verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("end <= request.mystery", "request.mystery"),
        ("end <= self.mystery", "self.mystery"),
        ("end <= self.encoder_cache_manager.size(request)", "encoder_cache_manager.size"),
        ("end <= LIMIT", "global name LIMIT"),
        ("end <= place.offset.real", ".real of a number"),
        ("end in {1, 2}", "number"),
        ("request.mm_features[end]", "index"),
        ("end ** 2 <= 4", "operator"),
        ("end <= request.num_computed_tokens / 2", "operator"),
        ("end is 3", "`is`"),
        ("self.encoder_cache_manager.free_encoder_input(request, 5)", "an item that the request does not have"),
    ],
)
def test_what_the_stubs_do_not_know_is_unknown_with_its_line(tmp_path: Path, condition: str, said: str) -> None:
    text = releasing(condition)
    found = judged(tmp_path, text)
    assert found.verdict is Verdict.UNKNOWN
    assert said in found.problem
    line = next(number for number, row in enumerate(text.splitlines(), 1) if "            if " in row)
    assert found.problem_line == line
    assert f"scheduler.py:{line}: " in found.problem


def test_an_unknown_read_in_a_helper_is_told_at_the_helpers_line(tmp_path: Path) -> None:
    helper = "\n    def _limit(self, request):\n        return request.mystery\n"
    text = releasing("end <= self._limit(request)", helpers=helper)
    found = judged(tmp_path, text)
    assert text.splitlines()[(found.problem_line or 0) - 1].strip() == "return request.mystery"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class S:\n    async def _free_encoder_inputs(self, request):\n        pass\n", "async"),
        ("class S:\n    @staticmethod\n    def _free_encoder_inputs(request):\n        pass\n", "decorator"),
        ("class S:\n    _free_encoder_inputs = other\n", "assigned"),
        ("class S:\n    def _free_encoder_inputs(self, request, more):\n        pass\n", "more"),
        ("class S:\n    def _free_encoder_inputs(self, *request):\n        pass\n", "any number of arguments"),
    ],
)
def test_a_method_of_another_shape_is_not_lifted(tmp_path: Path, text: str, said: str) -> None:
    found = judged(tmp_path, text)
    assert found.verdict is Verdict.UNKNOWN
    assert said in found.problem
    assert found.problem_line is not None
