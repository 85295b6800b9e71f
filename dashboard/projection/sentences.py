"""The selected texts of a map written back from their vectors, words in order, as a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from core.attacks.inversion.job import read_all
from core.attacks.inversion.reconstruct.blind import any_sentences
from core.attacks.inversion.reconstruct.scores import score_sentences
from core.encoders.white_box import parts_read
from core.jobs import JobState
from core.projection.moves import chosen_rows
from core.protocols import Vectors
from core.results import Recovery, Score
from core.specs import AttackSpec
from core.units import units_of
from dashboard import cache, markup, work
from dashboard.inversion import answers
from dashboard.kept import Kept
from dashboard.projection import picked
from dashboard.projection.drawn import DrawnMap
from dashboard.projection.state import MapRequest, restore_map

__all__ = ["SentencesRequest", "adopt_sentences_job", "written_back"]

ATTACK = "reconstruct"
MOST = 5
"""Texts written back at once: each takes its thousand queries."""


@dataclass(frozen=True, kw_only=True)
class SentencesRequest:
    """What identifies sentences that were written back: the map, and what is selected there."""

    map: MapRequest
    rows: tuple[int, ...]
    spec: AttackSpec

    @property
    def targets(self) -> list[int]:
        """The texts that are attacked: a sample, drawn by chance, where many are selected."""
        return [self.rows[int(i)] for i in chosen_rows(len(self.rows), MOST)]


_KNOWN: Kept[SentencesRequest, list[Recovery]] = Kept("_written_back", 8)


def adopt_sentences_job() -> None:
    """Take up the job that the address names, with its selection; not that of a file that went."""
    for request in work.adopt(SentencesRequest):
        if request.map.is_private:
            work.drop(request)
        else:
            restore_map(request.map)
            picked.select(request.map, request.rows)


def written_back(request: MapRequest, drawn: DrawnMap, rows: Sequence[int]) -> None:
    """Draw what starts and follows the attack on the selected vectors, and what it wrote."""
    spec = answers.request_for(ATTACK, "").spec
    wanted = SentencesRequest(map=request, rows=tuple(sorted(rows)), spec=spec)
    work.drop_others(SentencesRequest, lambda other: other == wanted)
    if request.on != answers.ENCODER or not rows:
        return
    st.subheader("The sentences themselves", anchor=False)
    found = _KNOWN.get(wanted)
    if found is None:
        found = _worked_out(wanted, drawn.vectors[wanted.targets])
    if found:
        _show(wanted, drawn, found)


def _worked_out(wanted: SentencesRequest, vectors: Vectors) -> list[Recovery] | None:
    n = len(wanted.targets)
    some = "it" if n == len(wanted.rows) == 1 else f"{n} of them"
    offer = work.Offer(
        label=f"Write {some} back from the vector" + ("s" if n > 1 else ""),
        key="write-back",
        on_click=partial(_start, vectors),
        failed="The sentences could not be written back",
        note="An attacker who may ask the encoder writes whole sentences: some seconds each.",
        again="Write them back again",
        takes_best=True,
    )
    done = work.take(wanted, offer)
    if done is None:
        return None
    found: list[Recovery] = done.result
    # One that was stopped is not remembered: it can be run to its end.
    return found if done.state is JobState.STOPPED else _KNOWN.add(wanted, found)


def _start(vectors: Vectors, wanted: SentencesRequest) -> None:
    work.start(wanted, read_all, wanted.spec, answers.ENCODER, vectors)


def _show(wanted: SentencesRequest, drawn: DrawnMap, found: Sequence[Recovery]) -> None:
    whole = [drawn.points.texts[i] for i in wanted.targets]
    texts = parts_read(cache.encoder(answers.ENCODER), whole)
    read = ["" if one.sentence is None else one.sentence.text for one in found]
    st.markdown(said(texts, read, len(wanted.rows)))
    for text, recovery in zip(whole, found, strict=True):
        st.html(_beside(text, recovery))


def said(texts: Sequence[str], read: Sequence[str], n_selected: int) -> str:
    """Return in a few sentences how near the sentences come, beside others of their length."""
    scored = partial(score_sentences, groups=units_of(texts))
    own, blind = scored(texts, read), scored(texts, any_sentences(texts))
    n = len(texts)
    part = f"{n} of {n_selected:,}, drawn at random" if n < n_selected else f"All {n}"
    n_exact = round(own["exact"].value * n / 100)
    return (
        f"{part}, from the vectors as they are, without a defence: **{n_exact} of {n} right word "
        f"for word**. Words in their order, by ROUGE-L: {_rouge(own, is_bold=True)}; any sentence "
        f"of that length, written without the vector, has {_rouge(blind)}. So few texts say "
        "little of others."
    )


def _rouge(found: Mapping[str, Score], *, is_bold: bool = False) -> str:
    return found["rouge_l"].said(0, is_bold=is_bold)


def _beside(text: str, recovery: Recovery) -> str:
    """Return a text above what was written from its vector."""
    told = recovery.sentence
    if told is None:
        return ""
    own = markup.label("The text") + markup.quoted(text)
    return own + markup.written_from(told, text, "As read")
