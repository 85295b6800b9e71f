"""Questions of data-protection rules and security standards that the figures concern."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Clause:
    """A question of a rule, and its source.

    Attributes
    ----------
    source : str
        The document with its edition and date, and the place in it: lists are renumbered.
    question : str
    """

    source: str
    question: str


_GDPR = "GDPR, Regulation (EU) 2016/679 of 27 April 2016"

CLAUSES = (
    Clause(
        f"{_GDPR}, Article 32 (security of processing)",
        "If stored vectors leak their texts to this degree, are they protected like the texts: by "
        "encryption, access control and retention limits?",
    ),
    Clause(
        f"{_GDPR}, Articles 33 and 34 (breaches)",
        "If only vectors were stolen, what could an attacker learn about whom, and how likely is a "
        "risk to these people?",
    ),
    Clause(
        f"{_GDPR}, Article 35 (impact assessment)",
        "Which attackers were considered, with what access, and which risk remains after the "
        "chosen measures?",
    ),
    Clause(
        "EDPB, Opinion 28/2024 on AI models, 17 December 2024 (means reasonably likely to be used)",
        "Do the access, time and cost stated beside each figure belong to these means?",
    ),
    Clause(
        "OWASP Top 10 for LLM Applications, vector and embedding weaknesses: LLM08 in the 2025 "
        "list (18 November 2024), LLM09 in the 2026 list (3 August 2026)",
        "Is embedding inversion among the threats, and is it tested with attackers who know the "
        "defence?",
    ),
    Clause(
        "OWASP AISVS 1.0 (24 June 2026), requirements 8.2.1, 8.3.1 and 11.2.1 to 11.2.5",
        "Which requirements could the measurements support or contradict?",
    ),
    Clause(
        "MITRE ATLAS v2026.07 (July 2026), AML.T0024.000 (infer training data membership), "
        "AML.T0024.001 (invert AI model), AML.T0057 (LLM data leakage) and AML.T0085.000 (data "
        "from AI services: RAG databases)",
        "Are these techniques in the threat model, and does a figure here measure one of them?",
    ),
)
