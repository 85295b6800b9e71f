"""The command line: a command a file, from `invert` to `list`.

`python -m core --help` explains it.

Results go to standard output, progress to standard error. The exit status is 0, or 2 after one
line that says what is wrong, or 130 after Ctrl-C; `audit` ends with 1 where a threshold is not met.
One file a command; heavy libraries are imported when a command runs, so that help and mistakes in
the arguments answer at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType

from core import __version__
from core.cache_folder import NO_HOME, user_home
from core.cli import (
    attributes,
    audit,
    audit_mechanism,
    cache,
    defend,
    deniability,
    evaluate,
    fit,
    invert,
    listing,
    membership,
    memorise,
    privatize,
    report,
    study,
    train,
    train_private,
    tune,
)
from core.cli.arguments import Parser
from core.cli.output import show_error, show_note
from core.cli.spec_file import with_spec
from core.durable import private_umask
from core.errors import CoreError, StoppedError
from core.store import secure_cache
from core.vault import NO_CACHE

__all__ = ["COMMANDS", "build_parser", "main"]

COMMANDS: Mapping[str, ModuleType] = {
    "invert": invert,
    "evaluate": evaluate,
    "audit": audit,
    "attributes": attributes,
    "train": train,
    "fit": fit,
    "defend": defend,
    "train-private": train_private,
    "deniability": deniability,
    "privatize": privatize,
    "audit-mechanism": audit_mechanism,
    "membership": membership,
    "memorise": memorise,
    "study": study,
    "report": report,
    "tune": tune,
    "cache": cache,
    "list": listing,
}
"""Each a module with `add_arguments`, `run` and `WHEN_STOPPED`; its docstring is its help."""

ENCODING = ("invert", "evaluate", "audit", "attributes", "train", "fit", "defend",
            "train-private", "deniability", "privatize", "tune", "serve")  # fmt: skip
"""Those that have --no-cache; the studies declare it with their other arguments."""


def build_parser(
    prog: str = "python -m core", commands: Mapping[str, ModuleType] = COMMANDS
) -> Parser:
    """Return the parser of all commands, under the name that people type."""
    parser = Parser(prog=prog, description="What a text embedding leaks.")
    parser.add_argument("--version", action="version", version=f"Leakscope {__version__}")
    choice = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in commands.items():
        summary = (module.__doc__ or "").splitlines()[0]
        command = choice.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        module.add_arguments(command)
        if name in ENCODING:
            cache.add_no_cache(command)
        command.set_defaults(run=module.run, when_stopped=module.WHEN_STOPPED)
    return parser


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "python -m core",
    more: Mapping[str, ModuleType] | None = None,
) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv : sequence of str or None
        The arguments; None for those of the process.
    prog : str
        What people type to get here.
    more : mapping of str to module, or None
        Commands of those who use the engine, put before its own: the dashboard's `serve`.
    """
    _prepare_libraries()
    given = list(sys.argv[1:] if argv is None else argv)
    commands = {**(more or {}), **COMMANDS}
    if given[:1] == ["serve"] and "serve" not in commands:
        show_error(_SERVE)
        return 2
    try:
        arguments = build_parser(prog, commands).parse_args(with_spec(given))
    except CoreError as error:
        show_error(str(error))
        return 2
    try:
        with private_umask(), _chosen_cache(arguments):
            status = arguments.run(arguments)
            sys.stdout.flush()
    except (KeyboardInterrupt, StoppedError):
        show_error(f"Stopped. {arguments.when_stopped}")
        return 130
    except BrokenPipeError:  # the reader of a pipe has seen enough
        status = 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except CoreError as error:
        show_error(str(error))
        return 2
    except Exception as error:
        if os.environ.get("LEAKSCOPE_DEBUG"):
            raise
        show_error(_unforeseen(error, arguments.when_stopped))
        return 2
    return int(status or 0)


@contextmanager
def _chosen_cache(arguments: argparse.Namespace) -> Iterator[None]:
    """Have what encodes keep its vectors as the command says, and its processes, too."""
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


def _unforeseen(error: Exception, when_stopped: str) -> str:
    """Return what to do where the system is in the way, or we are; no argument is."""
    if isinstance(error, MemoryError):
        return f"The memory is not enough. Take fewer or shorter texts. {when_stopped}"
    if isinstance(error, RecursionError):
        return "Something in the input is nested too deeply. Make it flat."
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return (
            f"{where}{error.strerror or error}. Check the disk and what this program may read and "
            f"write there. {when_stopped}"
        )
    kind = type(error).__name__
    return f"{kind}: {error}. This is a fault of ours; LEAKSCOPE_DEBUG=1 shows where."


_SERVE = "The engine serves no pages. Run `leakscope serve`, or `python -m dashboard serve`."


def _prepare_libraries() -> None:
    """Keep their own notices and progress bars out of standard error; name a home folder.

    Some look for their settings there when they are imported, and fail where there is none.
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
