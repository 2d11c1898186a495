"""The folder of one run: made before work starts, numbered, never overwritten."""

from pathlib import Path

from outlives.model.errors import Unwritable

__all__ = ["DEFAULT_OUT", "make_folder"]

DEFAULT_OUT = Path(".outlives")


def make_folder(out: Path, name: str) -> Path:
    """A new folder `name-0001` (or the next free number) below `out`; raises `Unwritable` with the reason."""
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
                return folder
            except FileExistsError:
                number += 1
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unwritable(f"cannot write to {out}: {reason}. Choose another folder with --out.") from error
