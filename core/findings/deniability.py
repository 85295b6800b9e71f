"""Findings on deniability: a privatised sentence, the choice of η, and replaced tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakscope.core.defences.deniability.eta_choice import MECHANISM, EtaChoice
from leakscope.core.defences.metric_dp.guarantee import verdict
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.figures import deniability as figures
from leakscope.core.figures.deniability import replacements_figure
from leakscope.core.figures.representations import encoder_title
from leakscope.core.findings.commands import command_of
from leakscope.core.findings.finding import Finding, Table
from leakscope.core.findings.prose import plain
from leakscope.core.findings.shared import INTERVAL, provenance_facts
from leakscope.core.formatting import describe_leak, format_percent, join_words
from leakscope.core.results.rows import Row
from leakscope.core.studies.deniability.replacements import (
    CLASSES,
    COLUMNS,
    describe_setting,
    table_cells,
)
from leakscope.core.studies.tradeoff.summary import Point, Tradeoff, kept_usefulness, measured_etas

if TYPE_CHECKING:
    from leakscope.core.defences.deniability.geometry import Geometry
    from leakscope.core.defences.deniability.sentence import DeniableSentence
    from leakscope.core.defences.deniability.vocabulary import VocabularyDeniability
    from leakscope.core.defences.metric_dp.guarantee import Guarantees

_NEARLY_ALL, _MOST, _NEARLY_NONE = 95, 75, 10
"""Bounds of the verdict, as the percentage of tokens that stay unchanged."""

_OWN, _NEAR, *_ = CLASSES


def privatised_sentence(
    sentence: DeniableSentence,
    eta: float,
    steps: Sequence[float],
    *,
    promises: Guarantees,
    statistics: VocabularyDeniability | None = None,
    measured: Tradeoff | None = None,
    released: Sequence[str] | None = None,
    encoder: str = "",
    commands: tuple[str, ...] = (),
) -> Finding:
    """Build the finding on how much of a sentence is unchanged at an η, and by η.

    Parameters
    ----------
    steps : sequence of float
        Values of η on the x-axis.
    statistics : VocabularyDeniability or None
        Statistics of all tokens, drawn with those of the sentence.
    measured : Tradeoff or None
        The measured trade-off; None if it was not measured for this encoder.
    released : sequence of str or None
        One draw, token by token. None omits everything that names a token of the sentence.
    encoder : str
        The encoder's name, if it may be shown and is not the bundled one.
    """
    etas = np.asarray(steps)
    title, body = _title_and_body(sentence, eta, measured)
    title = f"{title}, with {verdict(promises.nearest.epsilon)}"
    guaranteed = plain(promises.in_full)
    if released is None:  # `in_full` names a token
        also = f" {promises.also}" if promises.also else ""
        guaranteed = f"The odds are at most {promises.all_odds}.{also}"
    tokens = ["a token"] * len(sentence.ids) if released is None else list(sentence.tokens)
    mean = None
    if statistics is not None:
        mean = statistics.etas, statistics.mean_n_w.mean(0) / statistics.n_draws * 100
    curves = f"the sentence, each of its tokens{' and all tokens' if statistics else ''}"
    return Finding(
        title=title,
        body=f"{body}\n\n**What this η guarantees.** {guaranteed}",
        sentence=() if released is None else _marked_pieces(sentence.tokens, released),
        figure=figures.token_curves(
            etas, sentence.curves(etas) / sentence.n_draws * 100, tokens, mean, eta
        ),
        alt=f"Share of unchanged tokens against η, from {etas[0]:g} to {etas[-1]:g}; curves for "
        f"{curves}; η = {eta:g} is marked",
        facts=(
            ("Data", "one sentence, an example"),
            ("n", f"{sentence.n_draws:,} draws of noise for {len(sentence.ids)} tokens"),
            ("Interval", "95 %"),
            ("Attacker", "takes every released token as the original"),
            ("Access", "the released text"),
            ("Cost", "none: no training"),
            *((("Encoder", encoder),) if encoder else ()),
        ),
        commands=commands,
    )


def _title_and_body(
    sentence: DeniableSentence, eta: float, measured: Tradeoff | None
) -> tuple[str, str]:
    """Return the headline on a sentence at an η, and a paragraph that explains it."""
    unchanged = sentence.unchanged(eta)
    value, n = unchanged.value, len(sentence.ids)
    printed, interval = unchanged.parts(0)
    share = f"{printed} %"
    seen = None if measured is None else outlook(measured, MECHANISM, eta)
    more = ""
    if value >= _NEARLY_ALL:
        headline = f"nearly all of your text is published: {share} of its tokens stay unchanged"
        more = "**This protects almost nothing**: anyone with the released text can read it. "
        more += seen.leak if seen else ""
    elif value >= _MOST:
        headline = f"most of your text is published: {share} of its tokens stay unchanged"
        more = seen.leak if seen else ""
    elif value <= _NEARLY_NONE:
        headline = f"hardly anything of your text is left: {share} of its tokens stay unchanged"
        cost = seen.cost if seen else ""
        more = (
            f"**What that costs.** {cost}"
            if cost
            else "**What that costs** was not measured for this encoder. Expect the released "
            "text to be of little use."
        )
    else:
        headline = f"{share} of this text's tokens stay unchanged"
        more = seen.leak_in_brief if seen else ""
    beside = (
        "Before the text is released, noise replaces tokens (words, parts of words, punctuation) "
        f"by similar ones. Of {n} token{'s' if n > 1 else ''}, {share} stay unchanged on average "
        f"over {unchanged.n:,} draws of noise (95 % CI {interval} %, for this text only). A "
        "changed token may still be guessed."
    )
    return f"At η = {eta:g}, {headline}", f"{beside}\n\n{more}".strip()


def _marked_pieces(tokens: Sequence[str], released: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return one privatised draw as (text, mark) pairs, with word pieces joined into words."""
    pieces: list[tuple[str, str]] = []
    for old, new in zip(tokens, released, strict=True):
        if pieces and not new.startswith("##"):
            pieces.append((" ", "between words"))
        mark = "came back unchanged" if old == new else "changed"
        pieces.append((new.removeprefix("##"), mark))
    return tuple(pieces)


def recommended_eta(
    choice: EtaChoice,
    rule: str,
    effect: str,
    *,
    guarantees: Guarantees | None,
    measured: Tradeoff | None,
    why: str = "",
) -> Finding:
    """Build the finding on the η that a rule recommends: guarantee, cost and leakage.

    Parameters
    ----------
    rule : str
        The rule, such as `the rule for the worst token`.
    effect : str
        The effect of its η as the end of a sentence, such as `changes every token`.
    guarantees : Guarantees or None
        The mechanism's guarantees at the recommended η; None if no η was small enough.
    measured : Tradeoff or None
        The measured trade-off; None if it was not measured for this encoder.
    why : str
        The reason for the rule.
    """
    if choice.eta is None or guarantees is None:
        return Finding(title=f"No η is small enough for {rule}", body=choice.sentence)
    seen = () if measured is None else outlook(measured, MECHANISM, choice.eta).sentences
    return Finding(
        title=f"η = {choice.eta:g} {effect}",
        body="\n\n".join(filter(None, [why, plain(guarantees.in_full), *seen])),
        facts=(("Rule", choice.sentence), ("Guarantee", " ".join(guarantees.sentences))),
    )


NEAR = 1.2
"""A measured value applies to other η within this factor."""


@dataclass(frozen=True)
class Outlook:
    """The measured point of a mechanism that is nearest to a chosen η.

    Attributes
    ----------
    point : Point or None
        None if the mechanism was not measured.
    measured : float
        The η of `point`; NaN if there is none.
    """

    mechanism: str
    eta: float
    point: Point | None
    measured: float
    undefended: Point

    @property
    def is_near(self) -> bool:
        """Whether the measured η is close enough to the chosen one to be informative."""
        return self.point is not None and max(self.eta, self.measured) <= NEAR * min(
            self.eta, self.measured
        )

    @property
    def kept(self) -> dict[str, float]:
        """The share of utility above chance that remains, by task; 1 means that nothing is lost."""
        if self.point is None:
            return {}
        return kept_usefulness(self.point, self.undefended)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on the nearest measured η, the remaining utility and the recovered words."""
        title = DEFENCES[self.mechanism].title
        if self.point is None:
            return (
                f"{title} was not measured in the trade-off: its utility and leakage are unknown.",
            )
        if not self.is_near:
            return (
                f"Nothing was measured near η = {self.eta:g}: utility and leakage are unknown "
                f"here. The nearest measured η of {title} is {self.measured:g}.",
            )
        return (self._describe_nearest(), self._describe_usefulness(), self._describe_recovery())

    @property
    def cost(self) -> str:
        """A sentence on what this much noise costs; empty if neither it nor less was measured.

        More noise than was measured costs at least as much.
        """
        if self.point is None or not (self.is_near or self.eta < self.measured):
            return ""
        where = self._measured_at(is_already=self.eta < self.measured)
        return f"{where} {self._describe_usefulness()}"

    @property
    def leak(self) -> str:
        """A sentence on what leaks at this much noise; empty if neither it nor more was measured.

        Less noise than was measured leaks at least as much as was measured.
        """
        if self.point is None or not (self.is_near or self.eta > self.measured):
            return ""
        text = (
            f"{self._measured_at(is_already=self.eta > self.measured)} {self._describe_recovery()}"
        )
        if self.point.leakage.ci95.low <= self.undefended.leakage.ci95.high:
            return text
        return (
            f"{text} The attacker recovers more than from vectors without a defence, because text "
            "is released."
        )

    @property
    def leak_in_brief(self) -> str:
        """A sentence on what leaks at this η; empty unless it was measured nearby."""
        if self.point is None or not self.is_near:
            return ""
        leak, before = self.point.leakage, self.undefended.leakage
        return (
            f"**What leaks at η = {self.measured:g}.** From {leak.n:,} other sentences, the "
            f"strongest attacker recovers {describe_leak(leak)}; without a defence, the F1 is "
            f"{before.in_text(0)}."
        )

    def _measured_at(self, *, is_already: bool) -> str:
        """Return a lead-in sentence that names the η at which the trade-off was measured."""
        word = "Already at" if is_already and not self.is_near else "At"
        return f"{word} η = {self.measured:g}, the trade-off page measured the following."

    def _describe_nearest(self) -> str:
        """Return a lead-in that says whether this η or only a nearby one was measured."""
        title = DEFENCES[self.mechanism].title
        if math.isclose(self.eta, self.measured):
            return f"Utility and leakage of this mechanism (“{title}”) were measured at this η:"
        noise = "more" if self.measured < self.eta else "less"
        return (
            f"Utility and leakage of this mechanism (“{title}”) were not measured at this η. The "
            f"nearest η measured is {self.measured:g}, with {noise} noise:"
        )

    def _describe_usefulness(self) -> str:
        """Describe the remaining utility at the measured η."""
        kept = self.kept
        mean = sum(kept.values()) / len(kept)
        scores = self.point.utility if self.point else {}
        lost = [task for task in kept if scores[task].ci95.low <= scores[task].chance]
        text = (
            f"On {len(lost)} of {len(kept)} tasks, utility is not significantly better than "
            "guessing."
            if lost
            else "On every task, utility is significantly better than guessing."
        )
        return (
            "**Utility**: on a scale from guessing (0 %) to no noise (100 %), "
            f"{format_percent(mean)} is left on average over {len(kept)} tasks (worst task "
            f"{format_percent(min(kept.values()))}, best {format_percent(max(kept.values()))}). "
            f"{text}"
        )

    def _describe_recovery(self) -> str:
        """Describe what the strongest attacker recovers at the measured η."""
        assert self.point is not None
        leak, before = self.point.leakage, self.undefended.leakage
        text = (
            f"**Leakage**: the strongest attacker recovers {describe_leak(leak)}. Without a "
            f"defence, the F1 is {before.in_text(0)}; guessing reaches {leak.chance:.0f}."
        )
        back = self.point.token_inversion
        if back is None:
            return text
        share, interval = back.parts(0)
        return (
            f"{text} Of the tokens of the sentences attacked for this, {share} % (95 % CI "
            f"{interval}) stay unchanged at η = {self.measured:g}."
        )


def outlook(found: Tradeoff, mechanism: str, eta: float) -> Outlook:
    """Find the measured point of a mechanism nearest to an η, by ratio; return an Outlook."""
    points = measured_etas(found, mechanism)
    if not points:
        return Outlook(mechanism, eta, None, math.nan, found.undefended)
    near = min(points, key=lambda measured: abs(math.log(measured / eta)))
    return Outlook(mechanism, eta, points[near], near, found.undefended)


def describe_scales(found: Tradeoff | None, mechanism: str) -> str:
    """Explain that other mechanisms have other scales of η, and list their measured η.

    Parameters
    ----------
    found : Tradeoff or None
        None if nothing was measured for the encoder.
    """
    text = (
        f"These rules are only for **{DEFENCES[mechanism].title}**, which returns tokens. The η of "
        "other mechanisms has another scale."
    )
    if found is None:
        return (
            f"{text} Utility and leakage under noise were measured only for the bundled encoder; "
            "for this one, they are unknown."
        )
    scales = [
        f"“{DEFENCES[name].title}” at η {etas[0]:g}"
        + (f" to {etas[-1]:g}" if len(etas) > 1 else "")
        for name in dict.fromkeys(point.defence for point in found.points)
        if name in DEFENCES  # no chain, and nothing that is trained
        and name != mechanism
        and "eta" in DEFENCES[name].kind.__dataclass_fields__
        and (etas := list(measured_etas(found, name)))
    ]
    if not scales:
        return text
    return f"{text} The trade-off page measured {join_words(scales)}."


def all_outcomes(found: VocabularyDeniability, eta: float) -> Finding:
    """Build the finding on all tokens at an η: how often unchanged, and how many replacements."""
    at = found.at(eta)
    shown, mean = float(found.etas[at]), found.mean_n_w[:, at]
    return Finding(
        title="N_w and S_w of all tokens",
        body=f"The figure covers {len(found.tokens):,} tokens, at the measured η nearest to yours. "
        f"On average, a token stays unchanged in {mean.mean():.0f} of {found.n_draws:,} draws "
        f"(N_w), and no token in more than {found.n_w[:, at].max():,}. Over {len(mean)} sets of "
        f"draws, this average has a standard deviation of {mean.std(ddof=1):.1f}. The draws turn "
        f"a token into {found.mean_s_w[:, at].mean():.0f} different tokens on average, and into "
        f"at least {found.s_w[:, at].min():,} (S_w).",
        figure=figures.outcome_histograms(found.n_w[:, at], found.s_w[:, at], found.n_draws, shown),
        alt=f"Histograms of N_w and S_w over {len(found.tokens):,} tokens at η = {shown:g}",
    )


def distances_and_noise(geometry: Geometry, eta: float) -> Finding:
    """Build the finding that compares distances between tokens with the noise's length at an η."""
    length = geometry.dimension / eta
    return Finding(
        title="Distances between tokens, and the noise",
        body="The noise moves a token farther than the distance to its neighbours, but many tokens "
        "stay unchanged: with so many dimensions, the noise hardly ever points towards another "
        "token."
        if length > geometry.mean_distance[-1]
        else "",
        figure=figures.geometry_figure(geometry, eta),
        alt=f"Mean distance to the k-th nearest token, from {geometry.mean_distance[0]:.2f} to "
        f"{geometry.mean_distance[-1]:.2f}, and the noise with length {length:.1f}",
    )


def near_words(rows: Sequence[Row]) -> Finding:
    """Build the finding on how often near words replace a token, by mechanism, from rows."""
    first = rows[0]
    most = max(rows, key=lambda row: row.scores[_NEAR].value)
    others = [row for row in rows if row["defence"] != most["defence"]]
    near, interval = most.scores[_NEAR].parts()
    own, own_interval = most.scores[_OWN].parts()
    text = (
        f"“{_format_setting(most)}” produced the most near words: **{near} %** of the tokens "
        f"(95 % CI {interval}) became one of their 10 nearest neighbours. {own} % (95 % CI "
        f"{own_interval}) stayed unchanged"
    )
    if others:
        next_ = max(others, key=lambda row: row.scores[_NEAR].value)
        share, interval = next_.scores[_NEAR].parts()
        text += (
            f". The next mechanism, “{_format_setting(next_)}”, reached {share} % (95 % CI "
            f"{interval})"
        )
    n, n_sentences = first.scores[_NEAR].n, first["n_sentences"]
    return Finding(
        title="The setting with the most near words produced them for "
        f"{most.scores[_NEAR].value:.0f} % of the tokens",
        body=f"{text}. In every setting, the other tokens stayed unchanged or became a more "
        "distant token: with so many dimensions, hardly any token is near another. Asghar et al. "
        "(2024) criticise d_χ-privacy because a near word so rarely replaces a word.\n\n"
        f"Each mechanism was applied once to each of {n:,} tokens from {n_sentences:,} bundled "
        f"sentences. It could return any of {first['n_candidates']:,} tokens of "
        f"{plain(encoder_title(first['encoder']))}, also the same one. The encoder chosen above "
        "does not matter here. Nearness is the distance between token vectors.",
        figure=replacements_figure(rows),
        alt="One bar per mechanism and strength: per cent of tokens that became "
        f"{', '.join(CLASSES.values())}; the table below contains the same numbers",
        table=Table(
            columns=COLUMNS,
            rows=tuple(tuple(table_cells(row)) for row in rows),
        ),
        facts=(
            ("Data", "bundled sentences"),
            ("n", f"{n:,} tokens from {n_sentences:,} sentences"),
            ("Interval", INTERVAL),
            ("Attacker", "none: released tokens are compared with the originals"),
            *provenance_facts(row.provenance for row in rows),
        ),
        commands=(command_of("replacements"),),
    )


def _format_setting(row: Row) -> str:
    """Format a result row's mechanism and strength."""
    return plain(" at ".join(describe_setting(row)))
