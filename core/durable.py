"""Files that are whole or not there: written beside their place, on disk before they take it.

A file is written under another name, forced to the disk, renamed, and its folder forced to the
disk as well: only then does it count as written, whatever happens to process or power. While it
is being written its name is locked, so that the next run can tell what a killed run left behind
from what another process is still writing.

Files and folders are their owner's alone, whatever the umask: they may hold texts or vectors. What
is meant for others, such as the tables of a study, says so and is as the umask asks.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from core.cache_folder import claim

__all__ = [
    "Unfinished",
    "is_own",
    "is_safe",
    "make_folder",
    "make_private",
    "private_umask",
    "remove_leftovers",
    "unfinished",
    "write_whole",
]

_SUFFIX = ".unfinished"
_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
_PUBLIC_FILE, _PUBLIC_FOLDER = 0o666, 0o777
_OF_OTHERS = 0o077
_OTHERS_WRITE = 0o022
_SPECIAL = 0o7000
_ABANDONED_SECONDS = 3600.0
"""Age of a leftover where files cannot be locked, such as on some network disks."""


class Unfinished:
    """A file that is being written: `path` is where, `seal` gives it its name.

    Parameters
    ----------
    folder : Path
        Where it will lie.
    is_public : bool
        Let others read it, as far as the umask does.
    """

    def __init__(self, folder: Path, *, is_public: bool = False) -> None:
        self.folder = folder
        self._mode = _mode(_PRIVATE_FILE, _PUBLIC_FILE, is_public=is_public)
        self._handle, self.path = _begin(folder, self._mode)

    def seal(self, target: Path, *, is_new: bool = False) -> Path:
        """Force the content to the disk and give it its name, in the place of an older file.

        Parameters
        ----------
        target : Path
            In the same folder.
        is_new : bool
            Refuse to take the place of another file.

        Raises
        ------
        FileExistsError
            With `is_new`: there is a file of this name.
        OSError
            The disk refused; an older file is as it was.
        """
        if self._mode is not None:
            self.path.chmod(self._mode)
        os.fsync(self._handle)
        if is_new:
            self._name_anew(target)
        else:
            self.path.replace(target)
        _sync_folder(self.folder)
        return target

    def _name_anew(self, target: Path) -> None:
        try:
            os.link(self.path, target)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_LINKS or target.exists():
                raise
            self.path.rename(target)

    def end(self) -> None:
        """Remove what was not sealed; what cannot be removed now, the next run removes."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        with suppress(OSError):
            os.close(self._handle)


_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.EMLINK, errno.ENOSYS)
"""What file systems without links answer."""


@contextmanager
def unfinished(folder: Path, *, is_public: bool = False) -> Iterator[Unfinished]:
    """Give a file to write in `folder`, made where it is missing; not sealed, it is removed."""
    make_folder(folder, is_public=is_public)
    remove_leftovers(folder)
    file = Unfinished(folder, is_public=is_public)
    try:
        yield file
    finally:
        file.end()


def write_whole(target: Path, content: bytes, *, is_public: bool = False) -> Path:
    """Write a file that is whole and on disk, or leave the older one.

    Raises
    ------
    OSError
        The disk is full, or the folder cannot be written.
    """
    with unfinished(target.parent, is_public=is_public) as file:
        file.path.write_bytes(content)
        return file.seal(target)


def make_folder(folder: Path, *, is_public: bool = False) -> None:
    """Make a folder with those above it, each on disk before what comes into it."""
    missing = []
    for each in (folder, *folder.parents):
        if each.exists():
            claim(each)  # a run that was killed may have left it empty
            break
        missing.append(each)
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            _make_one(each, _mode(_PRIVATE_FOLDER, _PUBLIC_FOLDER, is_public=is_public))
        claim(each)
        _sync_folder(each.parent)
    folder.mkdir(exist_ok=True)  # says so where something else has the name


def _make_one(folder: Path, mode: int | None) -> None:
    """Make a folder; the special bits that it takes from the one above stay."""
    if mode is None:
        folder.mkdir(mode=_PUBLIC_FOLDER)
    else:
        folder.mkdir(mode=_PRIVATE_FOLDER)
        folder.chmod(mode | folder.stat().st_mode & _SPECIAL)


def make_private(folder: Path) -> None:
    """Take the rights of others off a folder and all below, where it was made with them.

    The owner's rights stay; links, and what others own, are left as they are.
    """
    with suppress(OSError):  # there is none
        if folder.is_symlink() or not folder.lstat().st_mode & _OF_OTHERS:
            return
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            _take_rights(Path(parent, name))
    _take_rights(folder)  # last: after a kill, the next run does it again


def _take_rights(path: Path) -> None:
    with suppress(OSError):  # it has just gone, or the disk knows no rights
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & _OF_OTHERS and is_own(path):
            path.chmod(mode & ~_OF_OTHERS)


def is_own(path: Path) -> bool:
    """Return whether a file or a folder is the user's, and no link."""
    found = path.lstat()
    owner = getattr(os, "geteuid", lambda: found.st_uid)()  # Windows has no such number
    return not stat.S_ISLNK(found.st_mode) and found.st_uid == owner


def is_safe(folder: Path) -> bool:
    """Return whether nobody but the user, and the system's own, can have put anything there.

    The folder is the user's, none above it lets others exchange it, and all in it is the user's.
    A folder that many may write to keeps what is theirs alone by its sticky bit, as /tmp does.
    """
    try:
        if not is_own(folder) or _OTHERS_WRITE & folder.stat().st_mode:
            return False
        for parent in folder.resolve().parents:
            found = parent.stat()
            is_open = _OTHERS_WRITE & found.st_mode and not found.st_mode & stat.S_ISVTX
            is_of_system = found.st_uid in (0, folder.lstat().st_uid)
            if is_open or not is_of_system:
                return False
        return all(
            is_own(Path(parent, name))
            for parent, folders, files in os.walk(folder)
            for name in (*folders, *files)
        )
    except OSError:
        return False


_asked_umask: int | None = None
"""What the user takes off public files, within `private_umask`; else the system knows it."""


def _mode(private: int, public: int, *, is_public: bool) -> int | None:
    """Return the rights to give; None where the umask of the process is to decide."""
    if not is_public:
        return private
    return None if _asked_umask is None else public & ~_asked_umask


@contextmanager
def private_umask() -> Iterator[None]:
    """Have libraries that write files of their own, too, make them their owner's alone."""
    global _asked_umask
    before = os.umask(0o077)
    asked = _asked_umask
    _asked_umask = before if asked is None else asked
    try:
        yield
    finally:
        os.umask(before)
        _asked_umask = asked


def remove_leftovers(folder: Path) -> None:
    """Remove what killed runs had begun to write here; what is being written stays."""
    for path in folder.glob(f".*{_SUFFIX}"):
        with suppress(OSError):  # another process was faster, or it is not ours
            if _is_abandoned(path):
                path.unlink(missing_ok=True)


def _begin(folder: Path, mode: int | None) -> tuple[int, Path]:
    """Open a file of a name of its own, and lock it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        path = folder / f".{secrets.token_hex(8)}{_SUFFIX}"
        with suppress(FileExistsError):
            handle = os.open(path, flags, _PUBLIC_FILE if mode is None else _PRIVATE_FILE)
            _lock(handle)
            with suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(handle).st_ino:
                    return handle, path
            os.close(handle)  # taken for a leftover before it was locked


def _is_abandoned(path: Path) -> bool:
    with path.open("rb") as file:
        can_tell = _lock(file.fileno())
    if can_tell is None:
        return time.time() - path.stat().st_mtime > _ABANDONED_SECONDS
    return can_tell


def _lock(handle: int) -> bool | None:
    """Return whether the file is now ours; None where files cannot be locked."""
    try:
        import fcntl
    except ImportError:  # Windows, which removes no file that is open
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # it has no such thing
            raise
    finally:
        os.close(handle)
