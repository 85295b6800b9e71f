"""Results: scores with intervals, rows of studies, and where they were measured."""

from leakscope.core.results.scores import (
    NO_INTERVAL,
    EvaluationResult,
    Interval,
    RecoveredWord,
    Recovery,
    Score,
    Scores,
    Sentence,
    SentenceStep,
)

__all__ = [
    "NO_INTERVAL",
    "EvaluationResult",
    "Interval",
    "RecoveredWord",
    "Recovery",
    "Score",
    "Scores",
    "Sentence",
    "SentenceStep",
]
