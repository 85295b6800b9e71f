"""The server's policy: allowed hosts, origins, encoders and limits, read from its settings.

`leakscope serve` writes the settings; a container sets the variables of the environment itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from streamlit import config

from leakscope.core.errors import InvalidInputError

ENCODERS = "LEAKSCOPE_ALLOW_ENCODERS"
MAX_SESSIONS = "LEAKSCOPE_MAX_SESSIONS"
MAX_UPLOADS = "LEAKSCOPE_MAX_UPLOADS_MB"
PROXY = "LEAKSCOPE_PROXY"
"""Environment variables: encoders that visitors may load (comma-separated), the most concurrent
visitors, the megabytes of all uploads together, and proxy addresses (comma-separated)."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EVERYWHERE = ("0.0.0.0", "::", "")
_MB = 2**20


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a server allows.

    Parameters
    ----------
    hosts : tuple of str
        The host names that it answers to; `*.example.org` matches all names below.
    origins : tuple of str
        Other origins whose pages may talk to it, such as `https://example.org`.
    encoders : tuple of str, or None
        Encoders that visitors may load besides the bundled one; None allows any.
    file_bytes, session_bytes, all_bytes : int
        Limits of one upload, of one visitor's uploads, and of all uploads together.
    sessions : int
        The most concurrent sessions.
    proxies : tuple of str
        Addresses whose forwarding headers are trusted; this computer's own always are.
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
        """The most concurrent sessions from one address or account; leaves room for others."""
        return max(1, self.sessions * 3 // 4)

    @property
    def named(self) -> tuple[str, ...]:
        """The allowed hosts other than this computer's own names."""
        return tuple(host for host in self.hosts if host not in LOOPBACK)

    @property
    def may_open_places(self) -> bool:
        """Whether visitors may open this computer's files and stores: only if all are local."""
        return self.encoders is None and set(self.hosts) <= set(LOOPBACK)

    def serves(self, host: str | None) -> bool:
        """Return whether the server answers requests with this Host header's value."""
        name = _host_name(f"//{host}") if host else None
        return name is not None and matches_host(name, self.hosts)

    def trusts(
        self, origin: str, host: str, *, port: int | None = None, is_tls: bool = False
    ) -> bool:
        """Return whether a page of this origin may connect to the server under this Host header.

        A proxy may drop the port that the browser sees, or use another host name: both are
        accepted if the origin's host is listed by name. A pattern such as `*.example.org` says
        which names are this server's own, not that it trusts their siblings: the origin's host
        must be the requested one. A page over plain http may have been altered in transit. It is
        trusted on this computer, when no proxy is in between, or if it is a listed origin.

        Parameters
        ----------
        port : int, optional
            The port on which the server listens.
        is_tls : bool
            Whether the request came over TLS, to the server or to a proxy.
        """
        name, netloc = _host_name(origin), origin.partition("//")[2].lower()
        if name is None or not origin.startswith(("http://", "https://")):
            return False
        if origin in self.origins:
            return True
        is_same, host_port = netloc == host.lower(), _port(host)
        if origin.startswith("http://") and name not in LOOPBACK:
            return is_same and not is_tls and port is not None and (host_port or 80) == port
        has_port = netloc != (f"[{name}]" if ":" in name else name)
        is_listed = name in self.named or (
            matches_host(name, self.named) and _host_name(f"//{host}") == name
        )
        return is_same or (is_listed and (not has_port or host.lower() == name))

    def may_load(self, encoder: str) -> bool:
        """Return whether visitors may load the named encoder; bundled ones (no colon) always."""
        return self.encoders is None or ":" not in encoder or encoder in self.encoders


def current_policy() -> Policy:
    """Read the server's policy from Streamlit's settings and environment variables.

    Raises
    ------
    InvalidInputError
        A limit in the environment is not a positive number.
    """
    address = str(config.get_option("server.address") or "")
    # The address to listen on is an allowed host by default, unless the server listens on all.
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
        all_bytes=_positive_number(MAX_UPLOADS, Policy.all_bytes // _MB) * _MB,
        sessions=_positive_number(MAX_SESSIONS, Policy.sessions),
        proxies=tuple(p.strip() for p in os.environ.get(PROXY, "").split(",") if p.strip()),
    )


def check_environment() -> None:
    """Raise InvalidInputError if a limit in the environment is no positive number.

    Raises
    ------
    InvalidInputError
        A limit in the environment is not a positive number.
    """
    for variable in (MAX_SESSIONS, MAX_UPLOADS):
        _positive_number(variable, 1)


def matches_host(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a host name is one of the names, or matches a pattern (`*.example.org`).

    Examples
    --------
    >>> [matches_host(name, ["*.example.org"]) for name in ("a.example.org", "example.org")]
    [True, False]
    """
    return any(
        name.endswith(pattern[1:]) if pattern.startswith("*.") else pattern in (name, "*")
        for pattern in patterns
    )


def _host_name(url: str) -> str | None:
    """Return the host name of a URL in lower case; None if the URL has a user, path or query."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError:
        return None
    if "@" in parts.netloc or parts.path or parts.query or parts.fragment or "\\" in url:
        return None
    return (parts.hostname or "").rstrip(".") or None


def _port(host: str) -> int | None:
    """Return the port of a Host header; None if it has no valid port."""
    try:
        return urlsplit(f"//{host}").port
    except ValueError:
        return None


def _positive_number(variable: str, otherwise: int) -> int:
    """Read an environment variable as a positive integer; `otherwise` if it is not set."""
    text = os.environ.get(variable, "").strip()
    if not text:
        return otherwise
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) == 0:
        raise InvalidInputError(f"{variable} must be a whole number of 1 or more, got {text!r}.")
    return int(text)
