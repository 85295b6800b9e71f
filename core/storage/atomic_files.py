"""Atomic file writes: to a temporary file, synced to disk, then renamed.

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

from leakscope.core.storage.cache_folder import mark_folder

_SUFFIX = ".unfinished"
_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
_PUBLIC_FILE, _PUBLIC_FOLDER = 0o666, 0o777
_OF_OTHERS = 0o077
_OTHERS_WRITE = 0o022
_SPECIAL = 0o7000
_ABANDONED_SECONDS = 3600.0
"""Age of an abandoned temporary file, where files cannot be locked (some network disks)."""


class TemporaryFile:
    """A temporary file being written at `path`; `seal` moves it to its final name.

    Parameters
    ----------
    folder : Path
        Folder of the final file.
    is_public : bool
        Let others read it, as far as the umask does.
    """

    def __init__(self, folder: Path, *, is_public: bool = False) -> None:
        self.folder = folder
        self._mode = _mode(_PRIVATE_FILE, _PUBLIC_FILE, is_public=is_public)
        self._handle, self.path = _create_temporary(folder, self._mode)

    def seal(self, target: Path, *, is_new: bool = False) -> Path:
        """Sync the content to disk and move it to its final name, replacing an older file.

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
            self._link_to(target)
        else:
            self.path.replace(target)
        _sync_folder(self.folder)
        return target

    def _link_to(self, target: Path) -> None:
        """Give the file its final name; raise FileExistsError if that is taken."""
        try:
            os.link(self.path, target)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_LINKS or target.exists():
                raise
            self.path.rename(target)

    def end(self) -> None:
        """Close the temporary file, and remove it if it was not sealed."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        with suppress(OSError):
            os.close(self._handle)


_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.EMLINK, errno.ENOSYS)
"""Error codes of file systems without hard links."""


@contextmanager
def unfinished(folder: Path, *, is_public: bool = False) -> Iterator[TemporaryFile]:
    """Yield a temporary file in `folder` (created if missing); remove it unless it is sealed."""
    make_folder(folder, is_public=is_public)
    remove_leftovers(folder)
    file = TemporaryFile(folder, is_public=is_public)
    try:
        yield file
    finally:
        file.end()


def atomic_write(target: Path, content: bytes, *, is_public: bool = False) -> Path:
    """Write bytes to a file atomically and return its path; on failure, the older file stays.

    Raises
    ------
    OSError
        The disk is full, or the folder cannot be written.
    """
    with unfinished(target.parent, is_public=is_public) as file:
        file.path.write_bytes(content)
        return file.seal(target)


def make_folder(folder: Path, *, is_public: bool = False) -> None:
    """Create a folder and its parents, synced to disk; mark cache folders that are empty."""
    missing = []
    for each in (folder, *folder.parents):
        if each.exists():
            mark_folder(each)  # a run that was killed may have left it empty
            break
        missing.append(each)
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            _mkdir(each, _mode(_PRIVATE_FOLDER, _PUBLIC_FOLDER, is_public=is_public))
        mark_folder(each)
        _sync_folder(each.parent)
    folder.mkdir(exist_ok=True)  # says so where something else has the name


def _mkdir(folder: Path, mode: int | None) -> None:
    """Create one folder with the given mode, keeping inherited special bits."""
    if mode is None:
        folder.mkdir(mode=_PUBLIC_FOLDER)
    else:
        folder.mkdir(mode=_PRIVATE_FOLDER)
        folder.chmod(mode | folder.stat().st_mode & _SPECIAL)


def make_private(folder: Path) -> None:
    """Revoke other users' permissions on a folder and everything below it.

    The owner's rights stay; links, and what others own, are left as they are.
    """
    with suppress(OSError):  # there is none
        if folder.is_symlink() or not folder.lstat().st_mode & _OF_OTHERS:
            return
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            _revoke_others(Path(parent, name))
    _revoke_others(folder)  # last: after a kill, the next run does it again


def _revoke_others(path: Path) -> None:
    """Revoke other users' permissions on one file or folder of the user's own."""
    with suppress(OSError):  # it has just gone, or the disk knows no rights
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & _OF_OTHERS and is_own(path):
            path.chmod(mode & ~_OF_OTHERS)


def is_own(path: Path) -> bool:
    """Return whether a file or folder belongs to the user and is no link."""
    found = path.lstat()
    owner = getattr(os, "geteuid", lambda: found.st_uid)()  # Windows has no such number
    return not stat.S_ISLNK(found.st_mode) and found.st_uid == owner


def is_safe(folder: Path) -> bool:
    """Return whether only the user and the system can have written anything in a folder.

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
"""The process's original umask within `private_umask`; None outside."""


def _mode(private: int, public: int, *, is_public: bool) -> int | None:
    """Return the mode to set on a new file or folder; None if the process's umask decides."""
    if not is_public:
        return private
    return None if _asked_umask is None else public & ~_asked_umask


@contextmanager
def private_umask() -> Iterator[None]:
    """Set, within the block, a umask that makes new files private, also those of libraries."""
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
    """Remove temporary files that killed runs left in a folder."""
    for path in folder.glob(f".*{_SUFFIX}"):
        with suppress(OSError):  # another process was faster, or it is not ours
            if _is_abandoned(path):
                path.unlink(missing_ok=True)


def _create_temporary(folder: Path, mode: int | None) -> tuple[int, Path]:
    """Create and lock a temporary file with a random name; return its handle and path."""
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
    """Return whether no process is writing a temporary file any more."""
    with path.open("rb") as file:
        can_tell = _lock(file.fileno())
    if can_tell is None:
        return time.time() - path.stat().st_mtime > _ABANDONED_SECONDS
    return can_tell


def _lock(handle: int) -> bool | None:
    """Try to lock an open file; return whether it succeeded, None if locking is not supported."""
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
    """Sync a folder's directory entries to disk, where supported."""
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
