"""From the address into the session and back: a page declares its parameters, this does the rest.

An address is read once: what the visitor chooses later stands. As soon as a control leaves what the
address asked for, the address is emptied, so that it never says what is not shown. What is typed
gets into an address by the link alone. (Streamlit's own `bind="query-params"` writes everything
typed there, and passes over in silence what does not exist.)
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

from dashboard.calm import plain

__all__ = ["Address", "NotOffered", "Parameter", "Query"]

Query = list[tuple[str, str]]

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_MOST_TOLD, _MOST_CHARACTERS = 5, 80
"""How many refused values are told, and how much of each: an address may hold anything."""
_MOST_OFFERED = 12
"""Options that are named beside what was refused."""


class NotOffered(ValueError):
    """The address asks for what there is not; `instead` is the nearest that there is, if any."""

    def __init__(self, instead: Any = None) -> None:
        super().__init__("not offered")
        self.instead = instead


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """What an address may ask of a page.

    Parameters
    ----------
    name : str
        In the address: `?name=value`.
    key : str
        In the session; that of the control, as a rule.
    default : Any
        What stands where neither address nor session says.
    options : sequence, optional
        What may be asked for, written as by `str`. None takes any text.
    is_many : bool
        A list of options: `?name=a&name=b` or `?name=a,b`.
    read : callable, optional
        Instead of `options`: from the text in the address to the value.
        Raises ValueError where there is no such value, `NotOffered` to name one instead.
    write : callable
        From the value to the text in a link; None leaves the parameter out.
    typed_in : tuple of str
        Keys of other controls in which the same is typed.
    hint : str
        Markdown told beside what was refused: what there is. Without one, a few options are named.
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

    def taken(self, values: Sequence[str]) -> tuple[Any, list[str]]:
        """Return the value that an address asks for, None for none, and what was refused of it."""
        if self.is_many:
            named = [n.strip() for value in values for n in value.split(",") if n.strip()]
            found = [option for option in self.options or () if str(option) in named]
            known = {str(option) for option in found}
            return found or None, [n for n in dict.fromkeys(named) if n not in known]
        try:
            return self._one(values[-1]), []
        except ValueError as refused:
            return getattr(refused, "instead", None), [values[-1]]

    def _one(self, value: str) -> Any:
        if self.read is not None:
            return self.read(value)
        if self.options is None:
            return value
        for option in self.options:
            if str(option) == value:
                return option
        raise NotOffered

    def offered(self) -> str:
        """Return what there is, as Markdown; nothing where that is too much to name."""
        options = self.options or ()
        if self.hint or not 0 < len(options) <= _MOST_OFFERED:
            return self.hint
        return plain(f"{self.name} can be {', '.join(map(str, options))}.")

    @property
    def is_typed(self) -> bool:
        """Whether it takes any text, which may be what a visitor typed."""
        return self.options is None and self.read is None

    def stands(self) -> Any:
        """Return the value in the session; of a list, in no order."""
        value = st.session_state.get(self.key)
        return frozenset(value) if self.is_many and value is not None else value


def held_by_browser() -> dict[str, str]:
    """Return what a page sends along that was typed before its session, by the key of its control.

    A server that was started again knows no session of a page that stayed open. Streamlit hands out
    what the page sends only once a control is drawn; by then it has a value from here.
    """
    running = get_script_run_ctx()
    if running is None:
        return {}
    sent = running.session_state._state._new_widget_state.states
    found = {}
    for control, value in sent.items():
        told = getattr(value, "value", None)
        key = user_key_from_element_id(control)
        if key and isinstance(told, WidgetState) and told.WhichOneof("value") == "string_value":
            found[key] = told.string_value
    return found


@dataclass(frozen=True)
class _Adopted:
    """What the session took over from an address, and what stood then for each name of it."""

    asked: dict[str, list[str]] = field(default_factory=dict)
    refused: tuple[tuple[str, str], ...] = ()
    stood: dict[str, Any] = field(default_factory=dict)
    emptied: dict[str, list[str]] = field(default_factory=dict)
    """What the address asked for before it was emptied, until the browser has heard of that."""


@dataclass(frozen=True)
class Address:
    """The address of a page, of which it declares the parameters in the order of a link."""

    page: str
    parameters: tuple[Parameter, ...]

    def adopt(self) -> set[str]:
        """Take over what the address asks for, once; return the names taken over just now.

        To be called at the top of a page. Empties the address where a control has left it since.
        """
        kept = self._kept()
        for parameter in self.parameters:
            initial = kept.get(parameter.key, parameter.default)
            st.session_state.setdefault(parameter.key, initial)
        asked = self._asked()
        if asked and asked == self._adopted.emptied:  # sent before the browser heard
            self._empty(asked)
            return set()
        if asked != self._adopted.asked:
            return self._take_over(asked, kept)
        if self._adopted.emptied:
            self._remember(_Adopted())
        stood = self._adopted.stood
        if any(p.stands() != stood[p.name] for p in self.parameters if p.name in stood):
            self._empty(asked)
        return set()

    def _kept(self) -> dict[str, str]:
        """Return what was typed before a session that the browser did not begin, by key."""
        new = [p for p in self.parameters if p.is_typed and p.key not in st.session_state]
        held = held_by_browser() if new else {}
        typed = {p.key: held[key] for p in new for key in (*p.typed_in, p.key) if key in held}
        return {key: _LONE_SURROGATES.sub("\ufffd", text) for key, text in typed.items()}

    def _asked(self) -> dict[str, list[str]]:
        names = [p.name for p in self.parameters if p.name in st.query_params]
        # Half a character pair is no text: it could not even be shown.
        return {
            name: [_LONE_SURROGATES.sub("\ufffd", v) for v in st.query_params.get_all(name)]
            for name in names
        }

    def _take_over(self, asked: dict[str, list[str]], kept: dict[str, str]) -> set[str]:
        here = [parameter for parameter in self.parameters if parameter.name in asked]
        names, refused = set(), list[tuple[str, str]]()
        for parameter in here:
            value, wrong = parameter.taken(asked[parameter.name])
            refused += [(parameter.name, text) for text in wrong]
            if value is not None and parameter.key not in kept:
                st.session_state[parameter.key] = value
                names.add(parameter.name)
        stood = {parameter.name: parameter.stands() for parameter in here}
        self._remember(_Adopted(asked, tuple(refused), stood))
        return names

    def _empty(self, asked: dict[str, list[str]]) -> None:
        for name in (*asked, "present"):
            st.query_params.pop(name, None)
        self._remember(_Adopted(emptied=asked))

    def asks(self, name: str, value: str) -> bool:
        """Return whether the address that was taken over asks for this value."""
        return self._adopted.asked.get(name, [])[-1:] == [value]

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """Names and values that the address asks for and that do not exist."""
        return self._adopted.refused

    def warn_of_refused(self, *beside: str) -> None:
        """Draw which values do not exist, and what there is instead, as Markdown."""
        if not self.refused:
            return
        told = [_clipped(f"{name}={value}") for name, value in self.refused[:_MOST_TOLD]]
        if len(self.refused) > _MOST_TOLD:
            told.append(f"and {len(self.refused) - _MOST_TOLD} more")
        wrong = {name for name, _ in self.refused}
        hints = [p.offered() for p in self.parameters if p.name in wrong and p.offered()]
        asked = f"The address asks for what does not exist here: {plain(', '.join(told))}."
        st.warning(" ".join([asked, *hints, *beside]), icon=":material/link_off:")

    def query(self) -> Query:
        """Return what an address must say to open the present view."""
        return [
            (parameter.name, text)
            for parameter in self.parameters
            for value in _each(parameter)
            if (text := parameter.write(value)) is not None
        ]

    def show_link(self, besides: Iterable[tuple[str, str]] = ()) -> None:
        """Draw the address of the present view, to be copied."""
        here = urlsplit(st.context.url or "")
        origin = f"{here.scheme}://{here.netloc}" if here.netloc else ""
        query = urlencode([*self.query(), *besides])
        if any(parameter.is_typed for parameter in self.parameters):
            st.caption("This address holds what you typed: whoever gets it, and their browser, "
                       "sees it.")  # fmt: skip
        st.code(f"{origin}/{self.page}{query and f'?{query}'}", language=None, wrap_lines=True)

    @property
    def _adopted(self) -> _Adopted:
        found: _Adopted = st.session_state.get(f"_address_{self.page}", _Adopted())
        return found

    def _remember(self, adopted: _Adopted) -> None:
        st.session_state[f"_address_{self.page}"] = adopted


def _each(parameter: Parameter) -> list[Any]:
    value = st.session_state.get(parameter.key)
    return list(value or ()) if parameter.is_many else [value]


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
