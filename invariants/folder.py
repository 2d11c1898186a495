"""The folder of one run: made before work starts, numbered, never overwritten; and files that appear whole."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from outlives.model.errors import Unwritable

__all__ = ["DEFAULT_OUT", "appear_whole", "check_folder", "make_folder", "new_folder"]

DEFAULT_OUT = Path(".outlives")


def make_folder(out: Path, name: str, option: str = "--out") -> Path:
    """A new folder `name-0001` (or the next free number) below `out`; raises `Unwritable` with the reason, and with the
    option that names another one."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        taken = [
            int(path.name[len(name) + 1 :])
            for path in out.glob(f"{name}-[0-9]*")
            if path.name[len(name) + 1 :].isdecimal()
        ]
        number = max(taken, default=0) + 1
        while True:
            folder = out / f"{name}-{number:04}"
            try:
                folder.mkdir()
                break
            except FileExistsError:
                number += 1
    except (OSError, ValueError) as error:
        raise _unwritable(out, option, error) from error
    return _writable(folder, option)


def check_folder(out: Path, option: str) -> None:
    """Make this folder, if it is not there, and see that files can be made in it. Raises as `make_folder`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise _unwritable(out, option, error) from error
    _writable(out, option)


def new_folder(folder: Path, option: str) -> Path:
    """Make this folder, which must not be there yet; raises `Unwritable` with the reason."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise Unwritable(f"{option} {folder} is there already; nothing is overwritten, name a new folder.") from None
    except (OSError, ValueError) as error:
        raise _unwritable(folder, option, error) from error
    return _writable(folder, option)


def appear_whole(path: Path, content: bytes, *, appear: Callable[[str, Path], object] = os.replace) -> None:
    """Write the file beside its place and let it `appear` there, readable for all, in one step: whole or not at all.
    Raises what the file system raises."""
    handle, partial = tempfile.mkstemp(prefix=".", suffix=".partial", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(partial, 0o644)
        appear(partial, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


def _writable(folder: Path, option: str) -> Path:
    """The folder itself, once a file could be made in it: a full or odd file system shows only then."""
    probe = folder / ".probe"
    try:
        probe.touch()
        os.unlink(probe)
    except OSError as error:
        raise _unwritable(folder, option, error) from error
    return folder


def _unwritable(folder: Path, option: str, error: OSError | ValueError) -> Unwritable:
    reason = getattr(error, "strerror", None) or str(error)
    shown = str(folder) if len(str(folder)) <= 200 else str(folder)[:197] + "..."
    return Unwritable(f"cannot write to {shown}: {reason}. Choose another folder with {option}.")
