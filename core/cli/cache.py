"""Show what is kept in the cache, or remove it.

Vectors of the texts of corpora are kept, so that none is encoded twice: a vector tells much about
its text. --no-cache, or LEAKSCOPE_NO_CACHE=1, keeps none; LEAKSCOPE_KEY_FILE=FILE, or
LEAKSCOPE_KEY, encrypts them.
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from core.cli.arguments import Parser
from core.cli.output import show_json, show_note
from core.errors import InvalidInputError

if TYPE_CHECKING:
    from core.cached import Kept

__all__ = ["add_arguments", "add_no_cache", "check_key", "run"]

WHEN_STOPPED = "What was removed is gone; the rest is as it was."


def add_no_cache(parser: argparse.ArgumentParser) -> None:
    """Add what keeps vectors off the disk, for a command that encodes."""
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="keep no vectors of the texts on disk, and read none; else they are kept below "
        "~/.cache/leakscope (`cache --help`)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `list` and `clear`."""
    from core.cache_folder import CACHED, ON_REQUEST

    parser.description = __doc__
    commands = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=Parser
    )
    told = "; ".join(f"{kind}: {what}" for kind, what in CACHED.items())
    shown = commands.add_parser("list", help="what is kept, of which encoder", description=told)
    asked = " ".join(ON_REQUEST)
    gone = commands.add_parser(
        "clear",
        help="remove it, without asking",
        description=f"Remove what is kept: all but {asked}, or what is named. It is made anew when "
        f"it is needed; {asked} take hours.",
    )
    gone.add_argument("--kind", action="append", default=[], choices=list(CACHED), metavar="KIND",
                      help=f"one of {', '.join(CACHED)}; may be repeated")  # fmt: skip
    gone.add_argument("--encoder", metavar="NAME", help="only of this encoder, as `list` names it")
    gone.add_argument("--older-than", type=float, default=0.0, metavar="DAYS",
                      help="only what was last added to so many days ago")  # fmt: skip
    gone.add_argument("--unencrypted", action="store_true", help="only vectors without encryption")
    for each in (shown, gone):
        each.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Print what is kept, or was removed."""
    from core.cache_folder import MARKER, cache_dir, unmarked
    from core.cached import kept, remove

    if arguments.action == "list":
        found, told = kept(), "kept"
    else:
        days = arguments.older_than
        if not (math.isfinite(days) and days >= 0):
            raise InvalidInputError(f"--older-than must be a number of days from 0, got {days}.")
        removal = remove(
            arguments.kind,
            encoder=arguments.encoder,
            older_than_hours=24 * days,
            is_unencrypted=arguments.unencrypted,
        )
        found, told = removal.removed, "removed"
        if removal.unknown:
            show_note(_of_unknown(removal.unknown))
    for folder in unmarked():
        show_note(
            f"{folder} has no mark of this program, so nothing in it is listed, removed or made "
            f"private. If all in it is Leakscope's, `touch {folder / MARKER}` says so."
        )
    if arguments.json:
        show_json({"folder": str(cache_dir()), told: [each.to_dict() for each in found]})
    else:
        _show(found, f"{told} in {cache_dir()}")


def check_key() -> str:
    """Return what to note before a command that encodes; a wrong key is told before any work.

    Raises
    ------
    CoreError
        See `core.vault.find_lock`.
    """
    from core.cache_folder import cache_dir
    from core.vault import KEY_FILE, LOCK_FILE, find_lock, is_cache_off, secret

    if is_cache_off():
        return ""
    find_lock(is_made=False)
    if secret() is None and (cache_dir("embeddings") / LOCK_FILE).exists():
        return (
            "the cache holds encrypted vectors and no key is given: new ones are kept "
            f"unencrypted. Give {KEY_FILE}, or --no-cache."
        )
    return ""


def _of_unknown(left: list[Kept]) -> str:
    """Return what to do about what may be of the encoder, too."""
    kinds = " ".join(f"--kind {kind}" for kind in sorted({each.kind for each in left}))
    key = " Or give the key: it tells encrypted ones." if any(e.is_encrypted for e in left) else ""
    return (
        f"{len(left):,} were left whose encoder is not known. `cache clear {kinds}` removes them, "
        f"with all others of the kind.{key}"
    )


def _show(found: list[Kept], where: str) -> None:
    for each in found:
        name = each.name if len(each.name) <= 44 else f"{each.name[:43]}…"
        of = each.encoder or ("encrypted" if each.is_encrypted else "")
        vectors = f"{each.n_vectors:,} vectors" if each.kind == "embeddings" else ""
        mark = " (encrypted)" if each.is_encrypted and each.encoder else ""
        print(f"{each.kind:<16}{name:<45}{of + mark:<24}{vectors:>18}"
              f"{_size(each.n_bytes):>12}{_age(each.hours):>12}")  # fmt: skip
    n_bytes = sum(each.n_bytes for each in found)
    print(f"{len(found):,} {where}: {_size(n_bytes)}")


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:,.1f} kB"


def _age(hours: float) -> str:
    return f"{hours / 24:,.0f} days" if hours >= 48 else f"{hours:,.1f} hours"
