"""A Reading worked out by hand, for the tests that display and export readings."""

from __future__ import annotations

from leakscope.core.attacks.inversion.reading import Mark, Reading, TokenScores
from leakscope.core.results import RecoveredWord, Recovery

HITS = (RecoveredWord("minister", 0.75),)
WRONG = (RecoveredWord("-1+1", 0.5),)
READING = Reading(
    attack="msp",
    encoder="minilm",
    text='=HYPERLINK("x"), said the "minister" of Zweig',
    counts_stop_words=False,
    pieces=(("the", Mark.STOP_WORD), ("minister", Mark.RECOVERED), ("said", Mark.MISSED)),
    hits=HITS,
    wrong=WRONG,
    recovery=Recovery(HITS + WRONG, n_queries=2),
    targets=frozenset({"minister", "said"}),
    unknown=frozenset({"zweig"}),
    kin={},
    revealing=frozenset(),
    scores=TokenScores(precision=50, recall=50, f1=50),
    all_words_f1=40,
    prior=TokenScores(precision=0, recall=0, f1=0),
    seconds=0.25,
    training={"n_texts": 100},
)
