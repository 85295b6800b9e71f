"""Imports of the optional libraries that detect and check identifiers."""

from __future__ import annotations

import logging
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from leakscope.core.errors import MissingDependencyError, install

PACKAGES = ("presidio-analyzer", "phonenumbers", "python-stdnum", "tldextract")


def check_libraries() -> None:
    """Raise MissingDependencyError unless all libraries for personal data are installed.

    Raises
    ------
    MissingDependencyError
        One is not; the message holds the command that installs all of them.
    """
    for module in ("presidio_analyzer", "phonenumbers", "stdnum", "tldextract"):
        if find_spec(module) is None:
            library(module)


def library(module: str) -> Any:
    """Import a module by its name; raise MissingDependencyError if it is not installed.

    Raises
    ------
    MissingDependencyError
        It is not installed; the message holds the command that installs all of them.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"Finding personal data needs optional libraries, and {module.partition('.')[0]} is "
            f"missing: `{install(*PACKAGES)}`."
        ) from error


@lru_cache(maxsize=1)
def presidio_recognizers() -> Any:
    """Import presidio's module of recognisers with its log off, because it logs parts of texts.

    Its IBAN recogniser logs what it cannot read, which may be personal.
    """
    found = library("presidio_analyzer.predefined_recognizers")
    logging.getLogger("presidio-analyzer").setLevel(logging.CRITICAL + 1)
    return found


@lru_cache(maxsize=1)
def domain_reader() -> Any:
    """Build tldextract's domain parser with its bundled suffix list: no network, no cache."""
    return library("tldextract").TLDExtract(suffix_list_urls=(), cache_dir=None)
