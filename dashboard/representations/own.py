"""The visitor's own study, and a job that measures their own encoder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import streamlit as st

from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.inversion.own_encoder import (
    N_AUXILIARY,
    N_TARGETS,
    OwnLeak,
    measure_encoders,
)
from leakscope.core.studies.inversion.representation_summary import (
    YOURS,
    Representations,
    with_uploaded,
)
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.own_study import upload_study
from leakscope.dashboard.representations.state import control_value, key_of
from leakscope.dashboard.server import policy
from leakscope.dashboard.ui import encoder_choice, work
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.errors import show_error

_NAME = key_of("own_encoder")


@dataclass(frozen=True)
class OwnRequest:
    """The request of the job: the encoder to measure."""

    encoder: str


def adopt_own_job() -> None:
    """Restore the encoder's name from a job that the URL names, after a reload."""
    for request in work.adopt_jobs(OwnRequest):
        st.session_state[_NAME] = request.encoder


def add_own_study(found: Representations) -> Representations:
    """Draw the upload of a study; return the results with its rows added, else unchanged."""
    with st.popover(
        "Your own study",
        icon=":material/upload_file:",
        help="Compare your own results with the shipped ones",
    ):
        both = upload_study(
            "own-representations",
            "The JSON file of `leakscope study encoders --out FILE`, and that of `classification` "
            "for the utility.",
            partial(with_uploaded, found),
        )
    if both is None:
        return found
    new = [name for name in both.encoders if name.startswith(YOURS)]
    if st.session_state.get("_own_encoders") != new:  # a new upload
        st.session_state["_own_encoders"] = new
        st.session_state[key_of("encoder")] = [*(control_value("encoder") or found.encoders), *new]
    return both


def own_encoder_result() -> tuple[OwnLeak, ...] | None:
    """Draw the input of an encoder's name and its job; return the measured leaks, or None."""
    st.markdown(
        "Compare an encoder with the bundled one, on bundled news. **Leakage:** the word probe "
        f"attacks {N_TARGETS} sentences. It needs no training, so you can compare any encoders "
        "within minutes. **Utility:** we search with the first sentence of each article and count "
        "how often that article is the top result."
    )
    if not encoder_choice.accepts_any_encoder():
        st.caption("This server opens only encoders that its operator allows.")
    name = st.text_input(
        "Name or folder",
        key=_NAME,
        persist_state="session",
        autocomplete="off",
        placeholder="st:sentence-transformers/paraphrase-MiniLM-L3-v2",
        help="`st:` or `mlm:`, followed by the name of a Hugging Face model or a folder; or an "
        "encoder that you fitted, such as `tfidf:my-tfidf` or `defended:my-defence`. A model that "
        "is not on this computer is downloaded from the Hugging Face hub.",
    ).strip()
    if not name:
        return None
    if not policy.current_policy().may_load(name):
        show_error(
            "This server does not allow this encoder. Its operator can allow it: leakscope serve "
            "--allow-encoder NAME.",
            title="This encoder cannot be measured",
        )
        return None
    request = OwnRequest(name)
    work.drop_others(OwnRequest, lambda other: other == request)
    offer = work.Offer(
        label="Measure this encoder",
        restart_label="Measure it again",
        key="measure-own",
        is_primary=True,
        on_click=_start,
        failed="The encoder could not be measured",
        keeps_result=True,
        note="Encodes about ten thousand words and sentences. This takes about a minute for a "
        "small model, longer for a large one.",
    )
    done = work.draw_job(request, offer)
    if done is None:
        return None
    found: tuple[OwnLeak, ...] = done.result
    st.markdown("The comparison is at the top of the page.")
    _save(found)
    return found


def _start(request: OwnRequest) -> None:
    """Start the background job that measures the named encoder and the bundled one."""
    names = tuple(dict.fromkeys((request.encoder, ENCODER.name)))
    work.start(request, measure_encoders, names, N_TARGETS, N_AUXILIARY)


def _save(found: tuple[OwnLeak, ...]) -> None:
    """Draw the button that downloads the results as CSV."""
    rows = [
        {
            "encoder": leak.encoder,
            "dimension": leak.dimension,
            "f1": leak.f1.value,
            "f1_low": leak.f1.ci95.low,
            "f1_high": leak.f1.ci95.high,
            "recall": leak.recall,
            "guessing": leak.f1.chance,
            "n": leak.f1.n,
            "found": useful.value,
            "found_low": useful.ci95.low,
            "found_high": useful.ci95.high,
            "found_guessing": useful.chance,
            "n_articles": useful.n,
        }
        for leak in found
        for useful in [leak.found.score()]
    ]
    save_csv(lambda: table_csv(rows), "own-encoder", about="Your encoder and the bundled one")
