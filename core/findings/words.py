"""The glossary as a finding."""

from __future__ import annotations

from leakscope.core.findings.finding import Finding, Table, facts_of_none
from leakscope.core.glossary import GLOSSARY


def words() -> Finding:
    """Build the finding that explains the terms used on the pages."""
    return Finding(
        title="What the terms mean",
        body="Each page ends with its main terms.",
        table=Table(
            columns=("Term", "Meaning"),
            rows=tuple((term, text.replace("*", "")) for term, text in GLOSSARY.items()),
        ),
        facts=facts_of_none("none: these are explanations, not measurements"),
    )
