"""Read page parameters from the URL query into the session, and build links to the current view.

A query is read once: what the visitor chooses later takes precedence. As soon as a control differs
from the query, the query is cleared, so that the URL never contradicts the page. Typed text gets
into a URL through the link alone. (Streamlit's own `bind="query-params"` writes everything typed
into the URL and silently ignores values that do not exist.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.common import user_key_from_element_id

from leakscope.core.findings.prose import plain

Query = list[tuple[str, str]]

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_MOST_REFUSED, _MOST_CHARACTERS = 5, 80
"""The most refused values that a warning lists, and the most characters of each."""
_MOST_OFFERED = 12
"""The most allowed options that a warning lists."""


class NotOffered(ValueError):
    """Raised for a query value that does not exist; `instead` is the nearest that does, if any."""

    def __init__(self, instead: Any = None) -> None:
        """Remember the nearest value that exists; None if there is none."""
        super().__init__("not offered")
        self.instead = instead


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One URL query parameter of a page, and the session key that it sets.

    Parameters
    ----------
    name : str
        The name in the query: `?name=value`.
    key : str
        The session key; usually the key of the control.
    default : Any
        The value if neither the query nor the session has one.
    options : sequence, optional
        The allowed values, written as by `str`. None allows any text.
    is_many : bool
        A list of options: `?name=a&name=b` or `?name=a,b`.
    read : callable, optional
        Replaces `options`: maps the text in the query to the value.
        Raises ValueError if there is no such value, `NotOffered` to offer another.
    write : callable
        Maps the value to the text in a link; None leaves the parameter out.
    typed_in : tuple of str
        Keys of other controls in which the same text is typed.
    hint : str
        Markdown that a warning adds: which values exist. Without one, it lists a few options.
    """

    name: str
    key: str
    default: Any = None
    options: Sequence[Any] | None = None
    is_many: bool = False
    read: Callable[[str], Any] | None = None
    write: Callable[[Any], str | None] = lambda value: None if value is None else str(value)
    typed_in: tuple[str, ...] = ()
    hint: str = ""

    def parse(self, values: Sequence[str]) -> tuple[Any, list[str]]:
        """Parse the query's texts; return the value (None for none) and a list of refused texts."""
        if self.is_many:
            named = [n.strip() for value in values for n in value.split(",") if n.strip()]
            found = [option for option in self.options or () if str(option) in named]
            known = {str(option) for option in found}
            return found or None, [n for n in dict.fromkeys(named) if n not in known]
        try:
            return self._parse_one(values[-1]), []
        except ValueError as refused:
            return getattr(refused, "instead", None), [values[-1]]

    def _parse_one(self, value: str) -> Any:
        """Parse one text of the query; raise ValueError if it is not an option."""
        if self.read is not None:
            return self.read(value)
        if self.options is None:
            return value
        for option in self.options:
            if str(option) == value:
                return option
        raise NotOffered

    def describe_options(self) -> str:
        """Describe the allowed values in Markdown; "" if there are too many to list."""
        options = self.options or ()
        if self.hint or not 0 < len(options) <= _MOST_OFFERED:
            return self.hint
        return plain(f"{self.name} can be {', '.join(map(str, options))}.")

    @property
    def is_typed(self) -> bool:
        """Whether the parameter accepts any text, which a visitor may have typed."""
        return self.options is None and self.read is None

    def session_value(self) -> Any:
        """Return the parameter's value in the session; a list of values as a frozenset."""
        value = st.session_state.get(self.key)
        return frozenset(value) if self.is_many and value is not None else value


def resent_texts() -> dict[str, str]:
    """Read the typed texts that a reconnecting browser sends again; return them by widget key.

    A restarted server has no session for a page that stayed open. Streamlit hands out the text
    that the page sends only when the control is drawn, after the session got its values.
    """
    running = get_script_run_ctx()
    if running is None:
        return {}
    sent = running.session_state._state._new_widget_state.states
    found = {}
    for control, value in sent.items():
        sent_state = getattr(value, "value", None)
        key = user_key_from_element_id(control)
        if (
            key
            and isinstance(sent_state, WidgetState)
            and sent_state.WhichOneof("value") == "string_value"
        ):
            found[key] = sent_state.string_value
    return found


@dataclass(frozen=True)
class _AdoptedQuery:
    """The query that a session took over from the URL, and the session values at that time."""

    asked: dict[str, list[str]] = field(default_factory=dict)
    refused: tuple[tuple[str, str], ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    cleared: dict[str, list[str]] = field(default_factory=dict)
    """The query before it was cleared, until the browser stops sending it."""


@dataclass(frozen=True)
class Address:
    """The URL of a page: its query parameters, in the order in which links list them."""

    page: str
    parameters: tuple[Parameter, ...]

    def adopt(self) -> set[str]:
        """Copy the URL query to the session, once per query; return the names that were set.

        To be called at the top of a page. Clears the query if a control no longer matches it.
        """
        resent = self._resent()
        for parameter in self.parameters:
            initial = resent.get(parameter.key, parameter.default)
            st.session_state.setdefault(parameter.key, initial)
        asked = self._requested()
        if asked and asked == self._adopted.cleared:  # sent before the browser cleared it
            self._clear(asked)
            return set()
        if asked != self._adopted.asked:
            return self._take_over(asked, resent)
        if self._adopted.cleared:
            self._remember(_AdoptedQuery())
        values = self._adopted.values
        if any(p.session_value() != values[p.name] for p in self.parameters if p.name in values):
            self._clear(asked)
        return set()

    def _resent(self) -> dict[str, str]:
        """Return typed texts that the browser sent again after a server restart, by session key."""
        new = [p for p in self.parameters if p.is_typed and p.key not in st.session_state]
        sent = resent_texts() if new else {}
        typed = {p.key: sent[key] for p in new for key in (*p.typed_in, p.key) if key in sent}
        return {key: _LONE_SURROGATES.sub("\ufffd", text) for key, text in typed.items()}

    def _requested(self) -> dict[str, list[str]]:
        """Read the URL query; return lists of values by parameter name, fit to be encoded."""
        names = [p.name for p in self.parameters if p.name in st.query_params]
        # A lone surrogate cannot be encoded, and so not be shown.
        return {
            name: [_LONE_SURROGATES.sub("\ufffd", v) for v in st.query_params.get_all(name)]
            for name in names
        }

    def _take_over(self, asked: dict[str, list[str]], resent: dict[str, str]) -> set[str]:
        """Copy the query's valid values to the session, except resent texts; return names set."""
        here = [parameter for parameter in self.parameters if parameter.name in asked]
        names, refused = set(), list[tuple[str, str]]()
        for parameter in here:
            value, wrong = parameter.parse(asked[parameter.name])
            refused += [(parameter.name, text) for text in wrong]
            if value is not None and parameter.key not in resent:
                st.session_state[parameter.key] = value
                names.add(parameter.name)
        values = {parameter.name: parameter.session_value() for parameter in here}
        self._remember(_AdoptedQuery(asked, tuple(refused), values))
        return names

    def _clear(self, asked: dict[str, list[str]]) -> None:
        """Remove this page's parameters from the URL, and remember the old query."""
        for name in (*asked, "present"):
            st.query_params.pop(name, None)
        self._remember(_AdoptedQuery(cleared=asked))

    def requests(self, name: str, value: str) -> bool:
        """Return whether the adopted URL query gives a parameter this value."""
        return self._adopted.asked.get(name, [])[-1:] == [value]

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """The (name, value) pairs of the adopted URL query whose value does not exist."""
        return self._adopted.refused

    def warn_of_refused(self, *beside: str) -> None:
        """Draw a warning that lists refused query values and allowed ones; nothing for none."""
        if not self.refused:
            return
        listed = [_clip(f"{name}={value}") for name, value in self.refused[:_MOST_REFUSED]]
        if len(self.refused) > _MOST_REFUSED:
            listed.append(f"and {len(self.refused) - _MOST_REFUSED} more")
        wrong = {name for name, _ in self.refused}
        hints = [
            p.describe_options()
            for p in self.parameters
            if p.name in wrong and p.describe_options()
        ]
        asked = f"This link contains unknown values: {plain(', '.join(listed))}."
        st.warning(" ".join([asked, *hints, *beside]), icon=":material/link_off:")

    def query(self) -> Query:
        """Return the session's values as (name, value) pairs of a query that opens this view."""
        return [
            (parameter.name, text)
            for parameter in self.parameters
            for value in _session_values(parameter)
            if (text := parameter.write(value)) is not None
        ]

    def show_link(self, besides: Iterable[tuple[str, str]] = ()) -> None:
        """Draw the full URL of the current view, ready to copy."""
        here = urlsplit(st.context.url or "")
        origin = f"{here.scheme}://{here.netloc}" if here.netloc else ""
        query = urlencode([*self.query(), *besides])
        if any(parameter.is_typed for parameter in self.parameters):
            st.caption(
                "This link contains what you typed. Anyone who receives it can see it, and so can "
                "their browser."
            )
        st.code(f"{origin}/{self.page}{query and f'?{query}'}", language=None, wrap_lines=True)

    @property
    def _adopted(self) -> _AdoptedQuery:
        """The adopted query of this page in the session; empty at first."""
        found: _AdoptedQuery = st.session_state.get(f"_address_{self.page}", _AdoptedQuery())
        return found

    def _remember(self, adopted: _AdoptedQuery) -> None:
        """Store the adopted query of this page in the session."""
        st.session_state[f"_address_{self.page}"] = adopted


def _session_values(parameter: Parameter) -> list[Any]:
    """Return a parameter's values in the session as a list."""
    value = st.session_state.get(parameter.key)
    return list(value or ()) if parameter.is_many else [value]


def _clip(text: str) -> str:
    """Cut a text to _MOST_CHARACTERS characters."""
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
