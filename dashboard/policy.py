"""Whom the server serves, and what visitors may have it do: read from its settings, kept nowhere.

`leakscope serve` writes the settings; a container sets the variables of the environment itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from streamlit import config

from core.errors import InvalidInputError

__all__ = [
    "ENCODERS",
    "LOOPBACK",
    "MAX_SESSIONS",
    "MAX_UPLOADS",
    "PROXY",
    "Policy",
    "check_environment",
    "in_force",
    "is_named",
]

ENCODERS = "LEAKSCOPE_ALLOW_ENCODERS"
MAX_SESSIONS = "LEAKSCOPE_MAX_SESSIONS"
MAX_UPLOADS = "LEAKSCOPE_MAX_UPLOADS_MB"
PROXY = "LEAKSCOPE_PROXY"
"""Variables of the environment: encoders that visitors may load, by commas; visitors at once;
megabytes of uploads held for all of them together; addresses of proxies, by commas."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EVERYWHERE = ("0.0.0.0", "::", "")
_MB = 2**20


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a server allows.

    Parameters
    ----------
    hosts : tuple of str
        The names that it answers to; `*.example.org` stands for all names below.
    origins : tuple of str
        Pages of other addresses that may talk to it, such as `https://example.org`.
    encoders : tuple of str, or None
        What visitors may load besides the bundled encoder; None allows whatever they type.
    file_bytes, session_bytes, all_bytes : int
        The largest upload; what is held of one visitor, and of all together.
    sessions : int
        Visitors at once.
    proxies : tuple of str
        Addresses whose requests say for whom they are; this computer's own always do.
    """

    hosts: tuple[str, ...] = LOOPBACK
    origins: tuple[str, ...] = ()
    encoders: tuple[str, ...] | None = None
    file_bytes: int = 200 * _MB
    session_bytes: int = 400 * _MB
    all_bytes: int = 1024 * _MB
    sessions: int = 100
    proxies: tuple[str, ...] = ()

    @property
    def sessions_of_share(self) -> int:
        """Visitors at once of one address or account: others find room."""
        return max(1, self.sessions * 3 // 4)

    @property
    def named(self) -> tuple[str, ...]:
        """The hosts that are not this computer's own."""
        return tuple(host for host in self.hosts if host not in LOOPBACK)

    def serves(self, host: str | None) -> bool:
        """Return whether a request for this host, as its header says it, is answered."""
        name = _name(f"//{host}") if host else None
        return name is not None and is_named(name, self.hosts)

    def trusts(
        self, origin: str, host: str, *, port: int | None = None, is_tls: bool = False
    ) -> bool:
        """Return whether a page of this origin may talk to the server at this host.

        A proxy may leave out the port that the browser sees, or ask by a name of its own: that
        is right where the origin's host is listed by name. A pattern such as `*.example.org` says
        which names are this server's, not that it trusts its siblings: the origin's host is the
        one that was asked for. A page of plain http may have been written on its way: it is
        trusted on this computer, and where the server itself is asked without a proxy, unless
        listed as an origin.

        Parameters
        ----------
        port : int, optional
            On which the server listens.
        is_tls : bool
            The request came by TLS, or a proxy says so.
        """
        name, netloc = _name(origin), origin.partition("//")[2].lower()
        if name is None or not origin.startswith(("http://", "https://")):
            return False
        if origin in self.origins:
            return True
        is_same, host_port = netloc == host.lower(), _port(host)
        if origin.startswith("http://") and name not in LOOPBACK:
            return is_same and not is_tls and port is not None and (host_port or 80) == port
        has_port = netloc != (f"[{name}]" if ":" in name else name)
        is_listed = name in self.named or (
            is_named(name, self.named) and _name(f"//{host}") == name
        )
        return is_same or (is_listed and (not has_port or host.lower() == name))

    def may_load(self, encoder: str) -> bool:
        """Return whether a visitor may have this encoder loaded; names without a colon ship."""
        return self.encoders is None or ":" not in encoder or encoder in self.encoders


def in_force() -> Policy:
    """Return the policy of this server, from its settings and its environment.

    Raises
    ------
    InvalidInputError
        A variable of the environment holds no number.
    """
    address = str(config.get_option("server.address") or "")
    # A server that listens on one address is asked for by it; one that listens on all must be told.
    hosts = [h.strip().lower() for h in config.get_option("server.allowedHosts") if h.strip()]
    hosts = hosts or [*LOOPBACK, *([] if address in _EVERYWHERE else [address.lower()])]
    is_local = address in LOOPBACK and set(hosts) <= set(LOOPBACK)
    listed = os.environ.get(ENCODERS)
    encoders = tuple(e.strip() for e in (listed or "").split(",") if e.strip())
    file_bytes = int(config.get_option("server.maxUploadSize")) * _MB
    return Policy(
        hosts=tuple(dict.fromkeys(hosts)),
        origins=tuple(o.strip() for o in config.get_option("server.corsAllowedOrigins")),
        encoders=None if is_local and listed is None else encoders,
        file_bytes=file_bytes,
        session_bytes=2 * file_bytes,
        all_bytes=_number(MAX_UPLOADS, Policy.all_bytes // _MB) * _MB,
        sessions=_number(MAX_SESSIONS, Policy.sessions),
        proxies=tuple(p.strip() for p in os.environ.get(PROXY, "").split(",") if p.strip()),
    )


def check_environment() -> None:
    """Refuse what `in_force` would refuse, before a server starts.

    Raises
    ------
    InvalidInputError
        A variable of the environment holds no number.
    """
    for variable in (MAX_SESSIONS, MAX_UPLOADS):
        _number(variable, 1)


def is_named(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a host is among names, of which `*.example.org` stands for all below.

    Examples
    --------
    >>> is_named("a.example.org", ["*.example.org"]), is_named("example.org", ["*.example.org"])
    (True, False)
    """
    return any(
        name.endswith(pattern[1:]) if pattern.startswith("*.") else pattern in (name, "*")
        for pattern in patterns
    )


def _name(url: str) -> str | None:
    """Return the host of an address in lower case; None where it holds anything besides."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # refuses what is no number
    except ValueError:
        return None
    if "@" in parts.netloc or parts.path or parts.query or parts.fragment or "\\" in url:
        return None
    return (parts.hostname or "").rstrip(".") or None


def _port(host: str) -> int | None:
    """Return the port of a Host header; None where it names none, or is none."""
    try:
        return urlsplit(f"//{host}").port
    except ValueError:
        return None


def _number(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "").strip()
    if not text:
        return otherwise
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) == 0:
        raise InvalidInputError(f"{variable} must be a whole number of 1 or more, got {text!r}.")
    return int(text)
