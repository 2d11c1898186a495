"""Independent pieces of work, in worker processes or one after the other: the same answers in the same order.

Belongs here: what a piece of work is, how it travels to a process and its answer back, progress on the way, and the
end of every process whatever happens. What the pieces do is in `jobs` and `table_run`.

Theory of operation. A job is plain data and the name of a function: the worker builds models, and loads a user's own
files, by itself. Jobs go through the standard interface `concurrent.futures.Executor`; where none is given, the pool of
`ordered` is made of fresh processes ("spawn"). Its workers never see Ctrl-C themselves, whose terminal sends it to all
of them; they hear of it over a pipe that the parent closes, then return what they know. The same pipe tells them that
the parent is gone, whereupon they end at once: nobody stays behind.
"""

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_any
from typing import Any

from outlives.model.errors import BadModel, BadUserFile, OutlivesError, OutOfRange

from .interrupt import ctrl_c_noticed, was_pressed
from .userfile import place_in_files, placed

__all__ = ["MOST_WORKERS", "Job", "Outcome", "Partial", "Pool", "Tell", "default_workers", "ended_by", "ordered",
           "workers_of"]  # fmt: skip

Tell = Callable[..., None]
"""`tell(done, text="")`: how much of its weight a job has done by now, and optionally a line to show."""

MOST_WORKERS = 64
_MOST_BY_DEFAULT = 4
_TELL_EVERY = 0.1
"""Seconds between two progress messages of one job; also how often the parent looks for them."""
_MOST_TEXT = 1_000
"""Characters of a progress line: a message that fits into one write arrives whole, or not at all."""
_PATIENCE = 60.0
"""Seconds that workers have after Ctrl-C to say what they know (a large checkpoint takes some). A second Ctrl-C ends
them at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of work: `work(about, tell)`, a function that can be imported and data that can be pickled."""

    name: str
    work: Callable[[Any, Tell], Any]
    about: Any
    weight: int = 1
    """What `tell` counts up to: its share of the progress line. 0: nobody knows, and it counts what it counts."""
    says_what_it_knows: bool = False
    """Returns a `Partial` when it is interrupted: worth waiting for."""
    user_files: tuple[str, ...] = ()
    """The `path.py:name` of a user that it runs."""


@dataclass(frozen=True, slots=True)
class Partial:
    """What a job returns that was interrupted: its value as far as it is known."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a job."""

    job: Job
    value: Any = None
    """None also where nothing is known."""
    interrupted: bool = False
    """Ended by Ctrl-C, before it began or with what was known by then."""
    lost: str = ""
    """Why there is no value although nobody interrupted it: its process died."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """An outcome on its way between processes."""

    value: Any = None
    interrupted: bool = False
    trouble: tuple[type[OutlivesError], str] | None = None


def default_workers() -> int:
    """The number of processors that this process may use, at most 4."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(_MOST_BY_DEFAULT, usable))


def workers_of(asked: int | None) -> int:
    """The number of workers that an option asks for; the default where it does not. Raises `OutOfRange`."""
    if asked is None:
        return default_workers()
    if not 1 <= asked <= MOST_WORKERS:
        raise OutOfRange("--workers", asked, 1, MOST_WORKERS)
    return asked


def ended_by(error: BaseException, user_files: Sequence[str]) -> BadUserFile:
    """The error for a run that something in a user's file ended, other than by breaking the model's contract."""
    place = place_in_files(error, user_files) or user_files[0]
    return BadUserFile(f"{place}: the run was ended by what a rule did there: {type(error).__name__}: {error}.")


def ordered(
    jobs: Sequence[Job], workers: int, advance: Tell, executor: Executor | None = None, *, apart: bool = False
) -> Iterator[Outcome]:
    """The outcome of each job, in the order of the jobs, whichever ends first.

    One worker, or one job, works in this process, unless it has to be `apart`. `advance` hears the progress of all
    jobs together. What a job raises is raised here in its turn, and the rest is given up. Ctrl-C while this waits makes
    every outcome that is not there yet an interrupted one. An `executor` that is given is used as it is, and not shut
    down.
    """
    count = _Count(jobs, advance)
    if executor is None and not apart and (workers == 1 or len(jobs) < 2):
        yield from _here(jobs, count)
        return
    pool = None
    if executor is None:
        try:
            pool = Pool(min(workers, len(jobs)))
        except (OSError, ImportError, NotImplementedError):  # a system without semaphores: one process does as well
            yield from _here(jobs, count)
            return
    try:
        yield from _elsewhere(jobs, count, pool, executor)
    finally:
        if pool is not None:
            pool.end()


def _here(jobs: Sequence[Job], count: "_Count") -> Iterator[Outcome]:
    stopped = False
    for number, job in enumerate(jobs):
        if stopped:
            yield Outcome(job=job, interrupted=True)
            continue
        answer = _attempt(job, count.teller(number))
        count.finished(number)
        stopped = answer.interrupted
        yield Outcome(job=job, value=answer.value, interrupted=answer.interrupted)


def _elsewhere(
    jobs: Sequence[Job], count: "_Count", pool: "Pool | None", executor: Executor | None
) -> Iterator[Outcome]:
    futures: list[Future[_Answer]] = []
    stopped = told = False
    try:
        if pool is not None:
            futures = pool.submit(jobs)
        else:
            assert executor is not None
            futures = [executor.submit(_perform, number, job) for number, job in enumerate(jobs)]
    except KeyboardInterrupt:
        stopped = True
    for number, job in enumerate(jobs):
        try:
            while not stopped and not wait(futures[number : number + 1], _TELL_EVERY).done:
                count.hear(pool)
        except KeyboardInterrupt:
            stopped = True
        if stopped and not told:
            told = True
            _stop(jobs, futures, pool)
        future = futures[number] if number < len(futures) else None
        if future is None or future.cancelled() or not future.done():
            yield Outcome(job=job, interrupted=True)
            continue
        count.hear(pool)
        count.finished(number)
        yield _outcome(job, future)


def _outcome(job: Job, future: "Future[_Answer]") -> Outcome:
    try:
        answer = future.result()
    except BrokenProcessPool:
        return Outcome(
            job=job,
            lost="a worker process died before it answered: killed, out of memory, or ended by the code that it ran",
        )
    if answer.trouble is not None:
        kind, text = answer.trouble
        raise kind.__new__(kind, text)  # the constructors of some build their text themselves
    return Outcome(job=job, value=answer.value, interrupted=answer.interrupted)


def _stop(jobs: Sequence[Job], futures: "Sequence[Future[_Answer]]", pool: "Pool | None") -> None:
    """Nothing begins any more, and who works says what it knows. A second Ctrl-C ends the waiting."""
    for future in futures:
        future.cancel()
    if pool is not None:
        pool.stop()
        working = [each for job, each in zip(jobs, futures, strict=False) if job.says_what_it_knows]
        with suppress(KeyboardInterrupt):
            wait([future for future in working if not future.cancelled()], _PATIENCE)


# --- progress ---------------------------------------------------------------------------------------------------------


class _Count:
    """How much of all jobs together is done."""

    def __init__(self, jobs: Sequence[Job], advance: Tell) -> None:
        self._weights = [job.weight for job in jobs]
        self._done = [0] * len(jobs)
        self._advance = advance

    def teller(self, number: int) -> Tell:
        """What job `number` is given."""

        def tell(done: int, text: str = "") -> None:
            self._done[number] = max(self._done[number], min(done, self._weights[number] or done))
            self._advance(sum(self._done), text)

        return tell

    def finished(self, number: int) -> None:
        """The job is done."""
        self.teller(number)(max(self._done[number], self._weights[number]))

    def hear(self, pool: "Pool | None") -> None:
        """Pass on what workers have said."""
        while pool is not None and not pool.said.empty():
            number, done, text = pool.said.get()
            self.teller(number)(done, text)


# --- the parent's side ------------------------------------------------------------------------------------------------


class Pool:
    """Fresh processes, each of which ends when the parent does."""

    def __init__(self, workers: int) -> None:
        context = get_context("spawn")
        self.said = context.SimpleQueue()
        self._hears, self._stops = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(self._hears, self.said))
        self._processes: list[Any] = []
        self._futures: list[Future[Any]] = []

    def submit(self, jobs: Sequence[Job]) -> "list[Future[_Answer]]":
        """Begin."""
        return [self.hand(_perform, number, job) for number, job in enumerate(jobs)]

    def hand(self, work: Callable[..., Any], *about: Any) -> "Future[Any]":
        """Have `work(*about)` done; processes are born in here, and only in here."""
        before = set(active_children())
        with _ctrl_c_held_back():
            try:
                future = self._executor.submit(work, *about)
            finally:
                self._processes += [each for each in active_children() if each not in before]
        self._futures = [each for each in self._futures if not each.done()] + [future]
        return future

    def stop(self) -> None:
        """Tell the workers that Ctrl-C was pressed."""
        self._stops.close()

    def end(self) -> None:
        """No process is left after this."""
        if not all(future.done() for future in self._futures):
            for process in self._processes:
                process.kill()
        self._executor.shutdown(cancel_futures=True)
        for end in (self._hears, self._stops, self.said):
            end.close()


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal. Processes born in here never see it: they are told by the parent."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- the worker's side ------------------------------------------------------------------------------------------------

_said: Any = None
"""Where progress goes; None: nobody listens (an executor that is not ours)."""
_stopped = threading.Event()


def _begin(hears: Connection, said: Any) -> None:
    """The first thing in a worker process."""
    global _said
    _said = said
    sys.stdout = sys.stderr  # standard output holds the report alone, whatever a user's file prints
    signal.signal(signal.SIGINT, lambda _number, _frame: None)  # raised by `_watch` only; means something in a job
    threading.Thread(target=_watch, args=(hears,), daemon=True).start()


def _watch(hears: Connection) -> None:
    parent = parent_process()
    assert parent is not None
    wait_for_any([hears, parent.sentinel])
    if parent.is_alive():
        _stopped.set()
        _thread.interrupt_main()
        parent.join()
    os._exit(1)


def _perform(number: int, job: Job) -> _Answer:
    """One job in a worker: what it raises on purpose comes back as words, with the place in the user's file, which a
    traceback that stays behind could not tell."""
    try:
        return _attempt(job, _teller(number))
    except BadModel as error:
        return _Answer(trouble=(BadModel, placed(error, job.user_files)))
    except OutlivesError as error:
        kind = type(error) if type(error).__module__.startswith("outlives.") else OutlivesError
        return _Answer(trouble=(kind, str(error)))
    except (Exception, SystemExit) as error:
        if not job.user_files:
            raise
        return _Answer(trouble=(BadUserFile, str(ended_by(error, job.user_files))))


def _attempt(job: Job, tell: Tell) -> _Answer:
    """The job, and whether Ctrl-C ended it."""
    value = None
    try:
        if parent_process() is None:
            value = job.work(job.about, tell)
        else:
            with ctrl_c_noticed():
                if _stopped.is_set():
                    raise KeyboardInterrupt
                value = job.work(job.about, tell)
    except KeyboardInterrupt:
        if value is None:
            return _Answer(interrupted=True)
    except Exception:
        if was_pressed():
            return _Answer(interrupted=True)
        raise
    return _Answer(value.value, interrupted=True) if isinstance(value, Partial) else _Answer(value)


def _teller(number: int) -> Tell:
    told = 0.0

    def tell(done: int, text: str = "") -> None:
        nonlocal told
        now = time.monotonic()
        if _said is not None and (text or now - told >= _TELL_EVERY):
            told = now
            _said.put((number, done, text[:_MOST_TEXT]))

    return tell
