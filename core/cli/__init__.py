"""The command line: one module for each command, from `invert` to `list`.

`leakscope --help` explains it.

Results go to standard output, progress to standard error. The exit status is 0, or 2 after a
one-line error, or 130 after Ctrl-C. `audit` ends with 1 if a threshold is exceeded, and `presence`
if a deleted text can still be inferred. Heavy libraries are imported only when a command runs, so
that help and errors in the arguments appear at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from leakscope.core import __version__
from leakscope.core.assets import ROOT
from leakscope.core.cli import cache
from leakscope.core.cli.shared.arguments import Parser
from leakscope.core.cli.shared.output import show_error, show_note
from leakscope.core.cli.shared.spec_file import with_spec
from leakscope.core.errors import CoreError, StoppedError
from leakscope.core.storage.atomic_files import private_umask
from leakscope.core.storage.cache_folder import NO_HOME, user_home

__all__ = ["COMMANDS", "build_parser", "main"]

_ENCODES = {
    "invert": True,
    "evaluate": True,
    "audit": True,
    "presence": True,
    "attributes": True,
    "train": True,
    "fit": True,
    "defend": True,
    "train-private": True,
    "deniability": True,
    "privatize": True,
    "audit-mechanism": False,
    "membership": False,
    "memorise": False,
    "study": False,
    "report": False,
    "tune": True,
    "cache": False,
    "list": False,
}
"""Whether each command has `--no-cache`; studies add it with their other arguments."""


class _Commands(Mapping[str, ModuleType]):
    """The modules of the commands by name, each imported when it is looked up.

    Each has `add_arguments`, `run`, `EXAMPLE` and `WHEN_STOPPED`. The first line of its docstring
    is its help.
    """

    def __getitem__(self, name: str) -> ModuleType:
        """Import and return a command's module; raise KeyError for an unknown name."""
        if name not in _ENCODES:
            raise KeyError(name)
        return import_module(f"{__name__}.{_file_stem(name)}")

    def __iter__(self) -> Iterator[str]:
        """Yield the commands' names without importing them."""
        return iter(_ENCODES)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(_ENCODES)


COMMANDS = _Commands()


def _file_stem(name: str) -> str:
    """Convert a command's name to the name of its module file, without the suffix."""
    return "listing" if name == "list" else name.replace("-", "_")


def _summary(name: str) -> str:
    """Read a command's one-line summary from its file, without importing it."""
    with (ROOT / "core" / "cli" / f"{_file_stem(name)}.py").open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')


def build_parser(commands: Mapping[str, ModuleType | None] = COMMANDS) -> Parser:
    """Build the argument parser with a subparser for each command.

    Parameters
    ----------
    commands : mapping of str to module or None
        None for a command of which nothing but its summary is shown.
    """
    parser = Parser(prog="leakscope", description="Measure what text embeddings leak.")
    parser.add_argument("--version", action="version", version=f"Leakscope {__version__}")
    choice = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in commands.items():
        if module is None:
            choice.add_parser(name, help=_summary(name))
            continue
        summary = (module.__doc__ or "").splitlines()[0]
        command = choice.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        module.add_arguments(command)
        example = f"example:\n  {module.EXAMPLE}"
        command.epilog = f"{command.epilog}\n\n{example}" if command.epilog else example
        if _ENCODES.get(name, True):
            cache.add_no_cache(command)
        command.set_defaults(run=module.run, when_stopped=module.WHEN_STOPPED)
    return parser


def main(
    argv: Sequence[str] | None = None,
    *,
    more: Mapping[str, ModuleType] | None = None,
) -> int:
    """Parse the command line, run the chosen command and return its exit status.

    Parameters
    ----------
    argv : sequence of str or None
        The arguments; None for `sys.argv[1:]`.
    more : mapping of str to module, or None
        Further commands, listed before the engine's own, such as the dashboard's `serve`.
    """
    _prepare_libraries()
    given = list(sys.argv[1:] if argv is None else argv)
    chosen = next((word for word in given if not word.startswith("-")), "")
    own = {name: COMMANDS[name] if name == chosen else None for name in COMMANDS}
    commands = {**(more or {}), **own}
    try:
        arguments = build_parser(commands).parse_args(with_spec(given))
    except CoreError as error:
        show_error(str(error))
        return 2
    try:
        with private_umask(), _embedding_cache_mode(arguments):
            status = arguments.run(arguments)
            sys.stdout.flush()
    except (KeyboardInterrupt, StoppedError):
        show_error(f"Stopped. {arguments.when_stopped}")
        return 130
    except BrokenPipeError:  # the reader of a pipe has closed it
        status = 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except CoreError as error:
        show_error(str(error))
        return 2
    except Exception as error:
        if os.environ.get("LEAKSCOPE_DEBUG"):
            raise
        show_error(_describe_unexpected_error(error, arguments.when_stopped))
        return 2
    return int(status or 0)


@contextmanager
def _embedding_cache_mode(arguments: argparse.Namespace) -> Iterator[None]:
    """Within the context, turn the embedding cache off if `--no-cache` was given."""
    from leakscope.core.storage.artifacts import secure_cache
    from leakscope.core.storage.encryption import NO_CACHE

    secure_cache()
    before = os.environ.get(NO_CACHE)
    if vars(arguments).get("no_cache"):
        os.environ[NO_CACHE] = "1"
    try:
        if "no_cache" in arguments and (note := cache.check_key()):
            show_note(note)
        yield
    finally:
        os.environ.pop(NO_CACHE, None)
        if before is not None:
            os.environ[NO_CACHE] = before


def _describe_unexpected_error(error: Exception, when_stopped: str) -> str:
    """Format an exception other than CoreError as a message with a remedy."""
    if isinstance(error, MemoryError):
        return f"There was not enough memory. Use fewer or shorter texts. {when_stopped}"
    if isinstance(error, RecursionError):
        return "The input is nested too deeply. Flatten it."
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return (
            f"{where}{error.strerror or error}. Check the disk and the permissions of this program "
            f"there. {when_stopped}"
        )
    kind = type(error).__name__
    return f"{kind}: {error}. This is a bug in Leakscope; LEAKSCOPE_DEBUG=1 shows where."


def _prepare_libraries() -> None:
    """Silence notices and progress bars of imported libraries; set HOME if there is none.

    Some libraries look for their settings in the home folder on import, and fail without one.
    """
    if user_home() is None:
        os.environ["HOME"] = NO_HOME
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if not sys.warnoptions:
        import warnings

        warnings.simplefilter("ignore")
