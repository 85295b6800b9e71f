"""Strategies that damage bytes, JSON, arrays and command-line words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tools.fuzz.making import Artefact

SNIPPETS = (
    # what ends a line, a field or a text
    *(b"\0", b"\r", b"\n", b"\r\n", b"\x1a", b"\x85", b"\xe2\x80\xa8", b"\x0c"),
    *(b'"', b"'", b",", b"\t", b";", b"{", b"}", b"]", b"\xa0", b" " * 300),
    # marks of encodings, and what none of them knows
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff", b"\xc3", b'"\\ud800"', b"\xed\xa0\x80"),
    *(b"\\u0000", "\u202e\u0301\U0001f600".encode()),
    # values, beginnings of files, and what is deep or long
    *(b"null", b"NaN", b"1e999", b"-1", b"=1+1", b"text", b"text,text", b"9" * 400, b"x" * 10_000),
    *(b"PAR1", b"\x1f\x8b", b"PK\x03\x04", b"[" * 2000, b'{"a":' * 500),
)

TEXTS = (
    "The minister met the doctor near the market.",
    *("", " ", "a", "\u200b", "😀" * 50, "\ud800", "x" * 5_000, "word " * 2_000, "مرحبا بالعالم"),
    *("e\u0301" * 40, "\0", "\r\n", "1 2 3", "[MASK] [SEP]", "</s>", "\u202etxet", "ﬁ", "İ"),
    "0" * 400,
)

_PLAIN_WORDS = """
    0 1 2 3 -1 +1 007 1.5 1e3 1e-300 1e308 1e400 nan inf -inf ٣ 1_000 0x10 true none None - --
    --- --nonsense -x = a= =b a=b texts.txt news.csv news.tsv news.jsonl news.parquet pairs.csv
    searches.csv answers.csv news.csv#text news.csv#nope # missing.txt missing/out.json . ..
    pipe /dev/null /dev/zero /dev/full /dev/null/out ~ out out.json out.csv text label title
    minilmm mlm: mlm:. mlm:pipe mlm:texts.txt st: st:. st:no/such tfidf tfidf: tfidf:.
    tfidf:/dev/zero prior probe msp priorr in cross cuda cpu mps float16 bfloat16 regular whole
    all openvino text_to_text token_representation sequence_representation nltk: nltk:nope hf:
    hf:no/such dev=news.csv dev=news.csv:split=dev =:= a=b=c:d 😀 vocabulary_size=-1
    vocabulary_size=x epochs=0 nope=1 localhost * http://
""".split()  # noqa: SIM905 - a tuple literal would take 100 lines

WORDS = (
    *_PLAIN_WORDS,
    *("9" * 20, "-" + "9" * 20, "9" * 5000, "", " ", "a" * 300, "\udcff"),
    *TEXTS[:6],
)


@st.composite
def bytes_from(draw: Callable[..., Any], content: bytes) -> bytes:
    """Draw a damaged copy of a file's content, or unrelated bytes."""
    if draw(st.integers(0, 7)) == 0:
        return bytes(draw(st.binary(max_size=200)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        to = draw(st.integers(at, min(len(content), at + 400)))
        how = draw(st.sampled_from(["cut", "flip", "drop", "twice", "insert", "insert", "fill"]))
        if how == "cut":
            content = content[:at]
        elif how == "flip" and at < len(content):
            changed = content[at] ^ draw(st.integers(1, 255))
            content = content[:at] + bytes([changed]) + content[at + 1 :]
        elif how == "drop":
            content = content[:at] + content[to:]
        elif how == "twice":
            content = content[:to] + content[at:to] + content[to:]
        elif how == "insert":
            content = content[:at] + draw(st.sampled_from(SNIPPETS)) + content[at:]
        else:
            content = content[:at] + b"\0" * (to - at) + content[to:]
    return content


_SHORT = st.text(st.characters(exclude_characters="/"), max_size=8)
"""No path out of the folder of a case."""

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    _SHORT,
)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_SHORT, inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def json_from(draw: Callable[..., Any], value: Any) -> Any:
    """Draw a copy of JSON data with one place changed: replaced, dropped or added."""
    whole: Any = [json.loads(json.dumps(value))]
    holder, place = whole, 0
    while isinstance(holder[place], dict | list) and holder[place] and draw(st.integers(0, 3)):
        holder = holder[place]
        places = sorted(holder) if isinstance(holder, dict) else list(range(len(holder)))
        place = draw(st.sampled_from(places))
    how = draw(st.sampled_from(["replace", "replace", "drop", "add"]))
    if how == "drop" and holder is not whole:
        del holder[place]
    elif how == "add" and isinstance(holder[place], dict):
        holder[place][draw(st.sampled_from(WORDS))] = draw(_JSON)
    elif how == "add" and isinstance(holder[place], list):
        holder[place].append(draw(_JSON))
    else:
        holder[place] = draw(_JSON)
    return whole[0]


@st.composite
def damaged_artefact(draw: Callable[..., Any], whole: Artefact) -> Artefact:
    """Draw a copy of an artifact with changed arrays or metadata, to be sealed validly."""
    arrays, meta = dict(whole.arrays), whole.meta
    if draw(st.booleans()):
        meta = draw(json_from(meta))
    for _ in range(draw(st.integers(0, 2))):
        if arrays:
            name = draw(st.sampled_from(sorted(arrays)))
            changed = draw(_array_from(arrays.pop(name)))
            if changed is not None:
                arrays[name] = changed
    return Artefact(arrays, meta)


@st.composite
def _array_from(draw: Callable[..., Any], array: NDArray[Any]) -> NDArray[Any] | None:
    """Draw a damaged copy of an array: another shape, type or values; None to drop it."""
    how = draw(st.sampled_from(sorted(_CHANGES)))
    with np.errstate(all="ignore"):
        changed = _CHANGES[how](array)
    return None if changed is None else np.ascontiguousarray(changed)


def _make_filler(value: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return a function that copies an array and puts a value into its middle."""

    def fill(array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of an array with the value in its middle."""
        is_real = np.issubdtype(array.dtype, np.floating)
        filled = array.copy()
        if filled.size:
            filled.reshape(-1)[filled.size // 2] = value if is_real else np.iinfo(np.int8).max
        return filled

    return fill


_CHANGES: dict[str, Callable[[NDArray[Any]], NDArray[Any] | None]] = {
    "none": lambda array: None,
    "empty": lambda array: array[:0] if array.ndim else array,
    "without a row": lambda array: array[:-1] if array.ndim else array,
    "twice": lambda array: np.concatenate([array, array]) if array.ndim else array,
    "one more axis": lambda array: array[None],
    "flat": lambda array: array.reshape(-1),
    "turned": lambda array: array.T,
    "NaN": _make_filler(np.nan),
    "infinite": _make_filler(np.inf),
    "huge": _make_filler(3e38),
    "negative": lambda array: -array if array.dtype.kind == "f" else array[::-1],
    "whole numbers": lambda array: array.astype(np.int64),
    "double": lambda array: array.astype(np.float64),
    "bytes": lambda array: array.astype(np.uint8),
    "truth": lambda array: array.astype(np.bool_),
    "zero": np.zeros_like,
    "one number": lambda array: np.zeros((), array.dtype),
}
