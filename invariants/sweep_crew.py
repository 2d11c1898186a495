"""Who does the items of a sweep: an executor of `concurrent.futures`, and what else has to be known of it.

Belongs here: worker processes of this machine, this process alone, and the standard interface to a dask cluster that
is there already. Each is a `Crew`: its executor, how many items it should have at a time, whether an error means that
a worker died, and whether it is still there. What is done with items that come back is in `sweep_run`.
"""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from outlives.model.errors import OutlivesError, UnknownName

from .sweep_items import digest_of
from .workers import Pool

__all__ = ["Crew", "DeadCluster", "Here", "Processes", "crew_for", "made_with"]

_CONNECT = 10.0
"""Seconds in which a cluster has to answer, and to have a worker."""
_PATIENCE = 60.0
"""Seconds for which a cluster may be without any worker before it counts as gone."""
_LOOK_EVERY = 1.0
DASK = "dask:"
PROCESSES = "processes"


class DeadCluster(OutlivesError):
    """A cluster that cannot be used: it does not answer, has no workers, or they have something else installed."""


class Crew(Protocol):
    """Those who work."""

    executor: Executor

    def room(self) -> int:
        """How many items it should have at a time."""
        ...

    def died(self, error: BaseException | None) -> bool:
        """Whether this is how the death of a worker shows (None: the item was given up by the executor)."""
        ...

    def gone(self) -> str:
        """Why nobody is there any more; empty where somebody is."""
        ...

    def end(self) -> None:
        """Give up what is not done. Nobody works afterwards."""
        ...


def crew_for(named: str | None, workers: int, files: Mapping[str, str]) -> Crew:
    """The crew that `--executor` asks for (None: processes). `files` are the user's own, with their digests: they must
    be where the workers are. Raises `UnknownName`, `DeadCluster`."""
    if named is None or named == PROCESSES:
        try:
            return Here() if workers == 1 else Processes(workers)
        except (OSError, ImportError, NotImplementedError):  # a system without semaphores: one process does as well
            return Here()
    if named.startswith(DASK):
        return _Dask(named.removeprefix(DASK), files)
    raise UnknownName("executor", named, (PROCESSES, "dask:ADDRESS"))


def made_with() -> dict[str, str]:
    """What decides the answers: the versions of what draws, solves and judges."""
    found = {}
    for package in ("outlives", "hypothesis", "z3-solver"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


# --- this machine -----------------------------------------------------------------------------------------------------


class Here(Executor):
    """This process: an item is done when `submit` returns."""

    def __init__(self) -> None:
        self.executor: Executor = self

    def submit(self, work: Callable[..., Any], /, *about: Any, **named: Any) -> "Future[Any]":
        """Do it."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(work(*about, **named))
        except Exception as error:
            future.set_exception(error)
        return future

    def room(self) -> int:
        """One: progress is told, and files are written, between two items."""
        return 1

    def died(self, _error: BaseException | None) -> bool:
        """Never."""
        return False

    def gone(self) -> str:
        """Never."""
        return ""

    def end(self) -> None:
        """Nothing is left to end."""


class Processes(Executor):
    """Worker processes, each a pool of its own: one that dies takes nothing with it but its item, and is replaced."""

    def __init__(self, workers: int) -> None:
        self.executor: Executor = self
        self._pools = [Pool(1) for _ in range(workers)]
        self._last: list[Future[Any] | None] = [None] * workers

    def submit(self, work: Callable[..., Any], /, *about: Any, **_: Any) -> "Future[Any]":
        """Hand it to a worker that has nothing to do, or else to the first one."""
        free = (number for number, last in enumerate(self._last) if last is None or last.done())
        number = next(free, 0)
        try:
            future = self._pools[number].hand(work, *about)
        except BrokenExecutor:  # it died, at its work or without any
            self._pools[number].end()
            self._pools[number] = Pool(1)
            future = self._pools[number].hand(work, *about)
        self._last[number] = future
        return future

    def room(self) -> int:
        """One item for each."""
        return len(self._pools)

    def died(self, error: BaseException | None) -> bool:
        """As the standard pool tells it."""
        return isinstance(error, BrokenExecutor)

    def gone(self) -> str:
        """Never: who dies is replaced."""
        return ""

    def end(self) -> None:
        """No process is left after this."""
        for pool in self._pools:
            pool.end()


# --- a cluster --------------------------------------------------------------------------------------------------------


class _Dask:
    """A cluster of dask.distributed that somebody else started: its scheduler hands items out, and again where a worker
    died, a few times."""

    def __init__(self, address: str, files: Mapping[str, str]) -> None:
        try:
            from distributed import Client, KilledWorker
            from distributed.comm.addressing import get_address_host_port
        except ImportError:
            raise DeadCluster(
                f"--executor dask:{address} needs dask.distributed, which is not installed: install outlives[dask]."
            ) from None
        _silence("distributed", "tornado", "asyncio")  # what goes wrong is told below, in a sentence
        self._address = address
        self._killed: type[BaseException] = KilledWorker
        try:
            get_address_host_port(address, strict=True)  # a client of none would not even end well
            self._client = Client(address, timeout=_CONNECT, set_as_default=False, name="outlives")
        except Exception as error:
            raise DeadCluster(
                f"--executor dask:{address}: no dask scheduler answers there within {_CONNECT:g} s "
                f"({_words(error)}). Start one with: dask scheduler."
            ) from None
        self._seen, self._looked, self._threads = time.monotonic(), 0.0, 0
        try:
            self._check(files)
        except BaseException:
            self.end()
            raise
        self.executor: Executor = self._client.get_executor(pure=False, retries=0)

    def _check(self, files: Mapping[str, str]) -> None:
        """Refuse workers that would answer otherwise than this process."""
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT)
        except Exception:
            raise DeadCluster(
                f"--executor dask:{self._address}: the cluster has no worker. Start some with: "
                f"dask worker {self._address} --nthreads 1."
            ) from None
        try:
            facts: Mapping[str, Any] = self._client.run(_facts, tuple(files))
        except Exception as error:
            raise DeadCluster(
                f"--executor dask:{self._address}: its workers cannot run outlives ({_words(error)}). Install the same "
                "version of it there."
            ) from None
        here = made_with()
        for worker, (versions, digests) in sorted(facts.items()):
            for package, wanted in here.items():
                if versions[package] != wanted:
                    raise DeadCluster(
                        f"--executor dask:{self._address}: worker {worker} has {package} {versions[package]}, and here "
                        f"it is {wanted}: answers would depend on who gives them. Install the same version there."
                    )
            for path, digest in files.items():
                if digests[path] != digest:
                    how = "has no such file" if digests[path] is None else "has another file of that name"
                    raise DeadCluster(
                        f"--executor dask:{self._address}: the sweep runs {path}, and worker {worker} {how}. No file "
                        "is sent to workers: put the same one at the same path there."
                    )

    def room(self) -> int:
        """Twice the threads, so that nobody waits for the next item."""
        self._look()
        return max(2, 2 * self._threads)

    def died(self, error: BaseException | None) -> bool:
        """As dask tells it, once it has tried by itself; or an item that was given up on the way."""
        return error is None or isinstance(error, self._killed)

    def gone(self) -> str:
        """Asked every now and then."""
        if self._client.status != "running":
            return "its scheduler does not answer any more"
        self._look()
        lonely = time.monotonic() - self._seen
        return "" if lonely < _PATIENCE else f"it has had no worker for {_PATIENCE:g} s"

    def end(self) -> None:
        """The items are given up; the cluster stays."""
        try:
            self._client.close(timeout=2)
        except Exception:  # of a cluster that is gone there is nothing to say goodbye to
            logging.getLogger(__name__).debug("the cluster did not say goodbye", exc_info=True)

    def _look(self) -> None:
        """Ask for the workers, now and then."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_EVERY and self._client.status == "running":
            self._looked = now
            try:
                self._threads = sum(self._client.nthreads().values())
            except Exception:  # the scheduler has just gone, which its status will say
                return
            if self._threads:
                self._seen = now


def _silence(*packages: str) -> None:
    """Nothing of theirs is logged from now on; many of their loggers have levels and handlers of their own."""
    for name in (*packages, *logging.root.manager.loggerDict):
        if name.partition(".")[0] in packages:
            logging.getLogger(name).disabled = True


def _facts(paths: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str | None]]:
    """Of a worker: versions, and the digests of these files (None: it has none)."""
    return made_with(), {path: digest_of(path) if Path(path).is_file() else None for path in paths}


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
