"""Questions of those who protect data: figures bear on them, and never say that one is met."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CLAUSES", "Clause"]


@dataclass(frozen=True)
class Clause:
    """A question, and where it is asked."""

    source: str
    question: str


CLAUSES = (
    Clause(
        "GDPR, Article 32 (security of processing)",
        "If stored vectors give their texts away to this degree, are they protected like the texts "
        "themselves: encryption, access, retention?",
    ),
    Clause(
        "GDPR, Articles 33 and 34 (breaches)",
        "If vectors alone were taken, what could a stranger read of whom, and how likely is a risk "
        "to these people?",
    ),
    Clause(
        "GDPR, Article 35 (impact assessment)",
        "Which attackers were considered, with what access, and what remains after the measures "
        "that were chosen?",
    ),
    Clause(
        "EDPB, Opinion 28/2024 on AI models (means reasonably likely to be used)",
        "Do the access, the time and the cost told beside each figure belong to those means?",
    ),
    Clause(
        "OWASP Top 10 for LLM applications, LLM08 (vector and embedding weaknesses)",
        "Is inversion of embeddings among the threats, and is it tested with attackers who know "
        "the defence?",
    ),
    Clause(
        "OWASP AISVS (embeddings and vector databases)",
        "Which requirements on stored vectors could these measurements be evidence for or against?",
    ),
)
