"""Whole sentences reconstructed from the selected vectors of a map, as a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from leakscope.core.attacks.inversion.job import invert_all
from leakscope.core.attacks.inversion.reconstruct.baselines import similar_length_sentences
from leakscope.core.attacks.inversion.reconstruct.scores import score_sentences
from leakscope.core.encoders.white_box import parts_read
from leakscope.core.jobs import JobState
from leakscope.core.projection.job import MapRequest
from leakscope.core.projection.points import sample_rows
from leakscope.core.protocols import Vectors
from leakscope.core.results import Recovery, Score
from leakscope.core.specs import AttackSpec
from leakscope.core.units import units_of
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.projection import state
from leakscope.dashboard.projection.job import DrawnMap
from leakscope.dashboard.ui import markup, work
from leakscope.dashboard.ui.session_results import SessionCache

ATTACK = "reconstruct"
MOST = 5
"""The most texts to reconstruct at once; each takes about a thousand queries."""


@dataclass(frozen=True, kw_only=True)
class SentencesRequest:
    """A request to reconstruct sentences: the map, its selected points, and the attack."""

    map: MapRequest
    rows: tuple[int, ...]
    spec: AttackSpec

    @property
    def targets(self) -> list[int]:
        """The indices of the points to attack: a random sample if more than MOST are selected."""
        return [self.rows[int(i)] for i in sample_rows(len(self.rows), MOST)]


_RECOVERIES: SessionCache[SentencesRequest, list[Recovery]] = SessionCache("_reconstructed", 8)


def adopt_sentences_job() -> None:
    """Restore the map and its selection from a job that the URL names; drop jobs of uploads."""
    for request in work.adopt_jobs(SentencesRequest):
        if request.map.is_private:
            work.drop(request)
        else:
            state.restore_map(request.map)
            state.select(request.map, request.rows)


def show_reconstruction(request: MapRequest, drawn: DrawnMap, rows: Sequence[int]) -> None:
    """Draw the controls of the reconstruction job, and the sentences once it is done."""
    spec = answers.request_for(ATTACK, "").spec
    wanted = SentencesRequest(map=request, rows=tuple(sorted(rows)), spec=spec)
    work.drop_others(SentencesRequest, lambda other: other == wanted)
    if request.on != answers.ENCODER or not rows:
        return
    st.subheader("Whole sentences", anchor=False)
    found = _RECOVERIES.get(wanted)
    if found is None:
        found = _finished_recoveries(wanted, drawn.vectors[wanted.targets])
    if found:
        _show(wanted, drawn, found)


def _finished_recoveries(wanted: SentencesRequest, vectors: Vectors) -> list[Recovery] | None:
    """Return what a finished or stopped job recovered; else draw its controls and return None."""
    n = len(wanted.targets)
    offer = work.Offer(
        label=f"Reconstruct {n} sentence{'s' if n > 1 else ''}",
        key="write-back",
        on_click=lambda asked: work.start(asked, invert_all, asked.spec, answers.ENCODER, vectors),
        failed="The sentences could not be reconstructed",
        note="An attacker who can query the encoder recovers whole sentences, in seconds each.",
        restart_label="Reconstruct again",
        accepts_best=True,
    )
    done = work.draw_job(wanted, offer)
    if done is None:
        return None
    found: list[Recovery] = done.result
    # The result of a stopped job is not cached, so that it can be run to its end.
    return found if done.state is JobState.STOPPED else _RECOVERIES.add(wanted, found)


def _show(wanted: SentencesRequest, drawn: DrawnMap, found: Sequence[Recovery]) -> None:
    """Draw the scores of the reconstructions, and each text above its reconstruction."""
    whole = [drawn.points.texts[i] for i in wanted.targets]
    texts = parts_read(cache.encoder(answers.ENCODER), whole)
    read = ["" if one.sentence is None else one.sentence.text for one in found]
    st.markdown(describe_scores(texts, read, len(wanted.rows)))
    for text, recovery in zip(whole, found, strict=True):
        st.html(_text_and_sentence(text, recovery))


def describe_scores(texts: Sequence[str], read: Sequence[str], n_selected: int) -> str:
    """Describe exact matches and mean ROUGE-L of reconstructions, beside random sentences."""
    scored = partial(score_sentences, groups=units_of(texts))
    own, baseline = scored(texts, read), scored(texts, similar_length_sentences(texts))
    n = len(texts)
    chosen = (
        f"{n} of {n_selected:,} texts, chosen at random" if n < n_selected else f"All {n} texts"
    )
    n_exact = round(own["exact"].value * n / 100)
    return (
        f"{chosen}, attacked without a defence: **{n_exact} of {n} recovered word for word**. "
        f"ROUGE-L is {_format_rouge(own, is_bold=True)}; random sentences of that length reach "
        f"{_format_rouge(baseline)}. These are too few texts to conclude anything about others."
    )


def _format_rouge(found: Mapping[str, Score], *, is_bold: bool = False) -> str:
    """Format the ROUGE-L among several scores, with its interval."""
    return found["rouge_l"].in_text(0, is_bold=is_bold)


def _text_and_sentence(text: str, recovery: Recovery) -> str:
    """Return a text, and below it the sentence reconstructed from its vector, as HTML."""
    sentence = recovery.sentence
    if sentence is None:
        return ""
    own = markup.label("The text") + markup.plain_paragraph(text)
    return own + markup.sentence_with_cosine(sentence, text, "As recovered")
