"""What a visitor adds: rows of a study of theirs, and an encoder that is measured as a job."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import streamlit as st

from core.results import Score
from core.said import guess_said, leak_said
from core.spreadsheets import table_csv
from core.studies.own_encoder import N_TARGETS, OwnLeak, measure_encoders
from core.studies.representation_summary import YOURS, Representations, beside_own
from dashboard import encoder_choice, policy, work
from dashboard.calm import plain, show_error
from dashboard.downloads import save_csv
from dashboard.inversion.answers import ENCODER
from dashboard.own_study import own_study
from dashboard.representations.state import chosen, key_of

__all__ = ["adopt_own_job", "beside_shipped", "measured"]

_NAME = key_of("own_encoder")


@dataclass(frozen=True)
class OwnRequest:
    """The encoder that is to be measured."""

    encoder: str


def adopt_own_job() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for request in work.adopt(OwnRequest):
        st.session_state[_NAME] = request.encoder


def beside_shipped(found: Representations) -> Representations:
    """Draw what takes rows of a study; return what ships with those rows beside it."""
    with st.popover(
        "Your own study",
        icon=":material/upload_file:",
        help="Rows that you measured, beside those that ship",
    ):
        both = own_study(
            "own-representations",
            "The JSON that `python -m core study encoders --out FILE` wrote, and that of "
            "`classification` for the usefulness.",
            partial(beside_own, found),
        )
    if both is None:
        return found
    new = [name for name in both.encoders if name.startswith(YOURS)]
    if st.session_state.get("_own_encoders") != new:  # they came just now
        st.session_state["_own_encoders"] = new
        st.session_state[key_of("encoder")] = [*(chosen("encoder") or found.encoders), *new]
    return both


def measured() -> tuple[OwnLeak, ...] | None:
    """Draw the choice of an encoder, the job that measures it, and what came of it; return that."""
    st.markdown(
        "Measured here, beside the bundled encoder, on news that ships. **What leaks:** "
        f"{N_TARGETS} sentences, read by the word probe, which learns nothing, so that every "
        "encoder can be held against every other in minutes. **What it is good for:** how many "
        "articles are found first, among all, by their first sentence."
    )
    if not encoder_choice.takes_any():
        st.caption("Whoever runs this server lists the encoders that it opens.")
    name = st.text_input(
        "Name or folder",
        key=_NAME,
        persist_state="session",
        autocomplete="off",
        placeholder="st:sentence-transformers/paraphrase-MiniLM-L3-v2",
        help="`st:` or `mlm:` and the name of a model of the Hugging Face hub or a folder; or what "
        "you fitted, such as `tfidf:my-tfidf` or `defended:my-defence`. A model that is not on "
        "this computer is fetched from the hub.",
    ).strip()
    if not name:
        return None
    if not policy.in_force().may_load(name):
        show_error(
            "Visitors of this server may not load this encoder. Whoever runs it can list it: "
            "leakscope serve --allow-encoder NAME.",
            title="This encoder cannot be measured",
        )
        return None
    request = OwnRequest(name)
    work.drop_others(OwnRequest, lambda other: other == request)
    offer = work.Offer(
        label="Measure this encoder",
        again="Measure it again",
        key="measure-own",
        is_primary=True,
        on_click=_start,
        failed="The encoder could not be measured",
        is_kept=True,
        note="Encodes some ten thousand words and sentences: about a minute for a small model, "
        "longer for a large one.",
    )
    done = work.take(request, offer)
    if done is None:
        return None
    found: tuple[OwnLeak, ...] = done.result
    _show(found)
    return found


def _start(request: OwnRequest) -> None:
    names = tuple(dict.fromkeys((request.encoder, ENCODER.name)))
    work.start(request, measure_encoders, names, N_TARGETS)


def _show(found: tuple[OwnLeak, ...]) -> None:
    told = [
        f"- **{plain(leak.encoder)}** ({leak.dimension:,} numbers a text): the attacker reads "
        f"{leak_said(leak.f1, leak.recall, is_bold=True)}; guessing comes to "
        f"{guess_said(leak.f1.chance)}. It finds **{_said(leak.found.score())}**"
        for leak in found
    ]
    st.markdown("\n".join(told))
    first, last = found[0], found[-1]
    if first is not last:
        st.caption(_told_apart(first, last))
    rows = [
        {"encoder": leak.encoder, "dimension": leak.dimension, "f1": leak.f1.value,
         "f1_low": leak.f1.ci95.low, "f1_high": leak.f1.ci95.high, "recall": leak.recall,
         "guessing": leak.f1.chance, "n": leak.f1.n,
         "found": useful.value, "found_low": useful.ci95.low, "found_high": useful.ci95.high,
         "found_guessing": useful.chance, "n_articles": useful.n}
        for leak in found
        for useful in [leak.found.score()]
    ]  # fmt: skip
    save_csv(lambda: table_csv(rows), "own-encoder", about="Your encoder beside the bundled one")


def _said(found: Score) -> str:
    return f"{found.said(0)} of 100 articles, n = {found.n}"


def _told_apart(one: OwnLeak, other: OwnLeak) -> str:
    """Say which of the two differences these texts bear out."""
    difference = one.found.change_from(other.found).ci95
    told = {
        "what leaks": one.f1.is_resolved_from(other.f1),
        "what is found": difference.low > 0 or difference.high < 0,
    }
    apart = [what for what, is_told in told.items() if is_told]
    alike = [what for what, is_told in told.items() if not is_told]
    parts = [f"told apart by {' and '.join(apart)}"] if apart else []
    parts += [f"not told apart by {' or '.join(alike)}"] if alike else []
    return (
        "On these texts, with what is found compared article by article, "
        f"the two are {', '.join(parts)}."
    )
