"""Show what the cache stores, or remove it.

The cache stores vectors of corpora, so that no text is encoded twice. A vector reveals much about
its text: --no-cache, or LEAKSCOPE_NO_CACHE=1, turns the cache off; LEAKSCOPE_KEY_FILE=FILE, or
LEAKSCOPE_KEY, encrypts it.
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from leakscope.core.cli.shared.arguments import Parser
from leakscope.core.cli.shared.output import show_json, show_note
from leakscope.core.errors import InvalidInputError

if TYPE_CHECKING:
    from leakscope.core.storage.cache_contents import CacheEntry

EXAMPLE = "leakscope cache list"
WHEN_STOPPED = "Removed entries stay removed; the rest is unchanged."


def add_no_cache(parser: argparse.ArgumentParser) -> None:
    """Add `--no-cache` to the parser of a command that encodes texts."""
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="neither write nor read cached vectors of the texts (default: cached in "
        "~/.cache/leakscope, see `cache --help`)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands `list` and `clear` with their arguments to the parser of `cache`."""
    from leakscope.core.storage.cache_folder import CACHED, ON_REQUEST

    parser.description = __doc__
    commands = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=Parser
    )
    kinds = "; ".join(f"{kind}: {what}" for kind, what in CACHED.items())
    shown = commands.add_parser(
        "list", help="show the entries and their encoders", description=kinds
    )
    slow = " ".join(ON_REQUEST)
    clear = commands.add_parser(
        "clear",
        help="remove entries without asking",
        description=f"Remove entries: all but {slow}, or those selected. They are recomputed when "
        f"needed; {slow} take hours.",
    )
    clear.add_argument(
        "--kind",
        action="append",
        default=[],
        choices=list(CACHED),
        metavar="KIND",
        help=f"one of {', '.join(CACHED)}; may be repeated",
    )
    clear.add_argument(
        "--encoder", metavar="NAME", help="only entries of this encoder, named as in `list`"
    )
    clear.add_argument(
        "--older-than",
        type=float,
        default=0.0,
        metavar="DAYS",
        help="only entries unchanged for this many days",
    )
    clear.add_argument("--unencrypted", action="store_true", help="only unencrypted vectors")
    for each in (shown, clear):
        each.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """List the cache's entries or remove the chosen ones, and print which."""
    from leakscope.core.storage.cache_contents import list_cache, remove
    from leakscope.core.storage.cache_folder import MARKER, cache_dir, unmarked_folders

    if arguments.action == "list":
        found, key = list_cache(), "kept"
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
        found, key = removal.removed, "removed"
        if removal.unknown:
            show_note(_describe_unknown_encoder(removal.unknown))
    for folder in unmarked_folders():
        show_note(
            f"{folder} is not marked as Leakscope's, so nothing in it is listed, removed or made "
            f"private. If Leakscope created everything in it, run `touch {folder / MARKER}`."
        )
    if arguments.json:
        show_json({"folder": str(cache_dir()), key: [each.to_dict() for each in found]})
    else:
        _print_entries(found, f"{key} in {cache_dir()}")


def check_key() -> str:
    """Check the cache's encryption key; return a warning, or "" if vectors are stored as expected.

    Raises
    ------
    CoreError
        See `leakscope.core.storage.encryption.find_lock`.
    """
    from leakscope.core.storage.cache_folder import cache_dir
    from leakscope.core.storage.encryption import (
        KEY_FILE,
        LOCK_FILE,
        find_lock,
        is_cache_off,
        read_key,
    )

    if is_cache_off():
        return ""
    find_lock(is_made=False)
    if read_key() is None and (cache_dir("embeddings") / LOCK_FILE).exists():
        return (
            "the cache contains encrypted vectors, but no key is given: new vectors are stored "
            f"unencrypted. Set {KEY_FILE}, or give --no-cache."
        )
    return ""


def _describe_unknown_encoder(left: list[CacheEntry]) -> str:
    """Return a note on entries not removed because their encoder is unknown, with a remedy."""
    kinds = " ".join(f"--kind {kind}" for kind in sorted({each.kind for each in left}))
    key = (
        " Or give the key, which identifies encrypted entries."
        if any(e.is_encrypted for e in left)
        else ""
    )
    return (
        f"Entries not removed because their encoder is unknown: {len(left):,}. `cache clear "
        f"{kinds}` removes them and all others of the kind.{key}"
    )


def _print_entries(found: list[CacheEntry], where: str) -> None:
    """Print a table of cache entries with their encoder, size and age, and the total size."""
    encoders = [
        each.encoder + " (encrypted)" * (each.is_encrypted and bool(each.encoder))
        or "encrypted" * each.is_encrypted
        for each in found
    ]
    width = max([23, *map(len, encoders)])
    for each, encoder in zip(found, encoders, strict=True):
        name = each.name if len(each.name) <= 44 else f"{each.name[:43]}…"
        vectors = f"{each.n_vectors:,} vectors" if each.kind == "embeddings" else ""
        print(
            f"{each.kind:<16}{name:<45}{encoder:<{width}} {vectors:>18}"
            f"{_format_size(each.n_bytes):>12}{_format_age(each.hours):>12}"
        )
    n_bytes = sum(each.n_bytes for each in found)
    print(f"{len(found):,} {where}: {_format_size(n_bytes)}")


def _format_size(n_bytes: int) -> str:
    """Format a number of bytes as kB or MB."""
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:,.1f} kB"


def _format_age(hours: float) -> str:
    """Format an age given in hours as hours or, from 48 hours, as days."""
    return f"{hours / 24:,.0f} days" if hours >= 48 else f"{hours:,.1f} hours"
