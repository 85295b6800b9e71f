"""Results of Qu et al. (2021) for networks under noise, and our η that match theirs."""

from __future__ import annotations

MATCHED = {31.0: 50, 48.5: 75, 65.0: 100, 81.5: 125, 98.5: 150, 116.5: 175}
"""The η of MiniLM's embedding at which as many tokens of SST-2 stay unchanged as at the paper's η
of BERT-base (results/deniability.md, to half a unit). The two scales differ."""

NULL = {
    ("sst2", "transformer"): 92.89,
    ("sst2", "bilstm"): 84.06,
    ("qqp", "transformer"): 91.06,
    ("qqp", "bilstm"): 82.61,
}
"""Accuracy without a constraint (Tables 4 and 5)."""

_ETAS = (50, 75, 100, 125, 150, 175)


def _by_eta(*values: float) -> dict[int, float]:
    """Map each of the paper's six η to its accuracy."""
    return dict(zip(_ETAS, values, strict=True))


_TOKEN, _TEXT = "token_representation", "text_to_text"

CONSTRAINED = {
    ("sst2", "transformer", _TOKEN): _by_eta(51.26, 53.10, 52.98, 56.08, 56.65, 59.75),
    ("sst2", "transformer", _TEXT): _by_eta(49.20, 59.06, 70.30, 83.60, 89.68, 91.51),
    ("sst2", "bilstm", _TOKEN): _by_eta(50.92, 54.47, 56.08, 56.08, 59.17, 62.16),
    ("sst2", "bilstm", _TEXT): _by_eta(50.92, 53.56, 66.97, 74.20, 81.19, 82.11),
    ("qqp", "transformer", _TOKEN): _by_eta(63.70, 63.18, 63.18, 63.18, 64.47, 63.54),
    ("qqp", "transformer", _TEXT): _by_eta(63.18, 64.85, 72.38, 82.74, 87.59, 89.76),
    ("qqp", "bilstm", _TOKEN): _by_eta(64.09, 63.18, 63.18, 63.18, 68.11, 69.87),
    ("qqp", "bilstm", _TEXT): _by_eta(64.23, 66.31, 71.08, 75.34, 78.54, 80.66),
}
"""Tables 4 and 5: accuracy by task, network and mechanism."""

OBJECTIVE_ORDER = ("vanilla", "probability", "denoising")

ADAPTED = {
    ("sst2", _TOKEN, "vanilla"): _by_eta(53.90, 57.91, 67.09, 77.06, 81.88, 86.58),
    ("sst2", _TOKEN, "probability"): _by_eta(54.24, 57.57, 67.66, 77.18, 81.88, 86.93),
    ("sst2", _TOKEN, "denoising"): _by_eta(53.56, 60.89, 70.41, 78.10, 83.95, 86.93),
    ("sst2", _TEXT, "vanilla"): _by_eta(52.18, 59.63, 71.90, 84.29, 90.48, 92.09),
    ("sst2", _TEXT, "probability"): _by_eta(53.10, 57.34, 72.59, 84.29, 90.71, 92.09),
    ("sst2", _TEXT, "denoising"): _by_eta(50.92, 59.06, 72.25, 84.06, 90.25, 92.20),
    ("qqp", _TOKEN, "vanilla"): _by_eta(64.34, 66.45, 76.68, 82.00, 85.20, 86.98),
    ("qqp", _TOKEN, "probability"): _by_eta(63.64, 68.21, 76.86, 82.19, 85.20, 86.88),
    ("qqp", _TOKEN, "denoising"): _by_eta(64.44, 71.19, 77.88, 82.49, 85.23, 86.91),
    ("qqp", _TEXT, "vanilla"): _by_eta(63.75, 66.43, 76.28, 83.46, 87.90, 89.97),
    ("qqp", _TEXT, "probability"): _by_eta(64.19, 66.16, 76.10, 83.62, 88.01, 89.94),
    ("qqp", _TEXT, "denoising"): _by_eta(64.69, 66.93, 76.03, 83.51, 87.91, 89.90),
}
"""Tables 6 and 7: accuracy of BERT after privacy-adaptive pretraining."""


ALIKE = {"mrpc": "qqp"}
"""Tasks that the paper lacks, with its most similar task."""


def describe_similar_constrained(task: str, reader: str) -> str:
    """Describe the paper's accuracies under noise on its most similar task; "" if none.

    Examples
    --------
    >>> describe_similar_constrained("mrpc", "bilstm").partition(": ")[2][:57]
    '82.6 without noise; text to text 64.2 at its η 50, 66.3 a'
    >>> describe_similar_constrained("sst2", "bilstm")
    ''
    """
    alike = ALIKE.get(task, "")
    null = NULL.get((alike, reader))
    if null is None:
        return ""
    told = [
        f"{name} {_format_by_eta(CONSTRAINED[alike, reader, how])}"
        for how, name in ((_TEXT, "text to text"), (_TOKEN, "token representation"))
    ]
    return f"{_FOR_PAIRS}: {null:.1f} without noise; {'; '.join(told)}."


def describe_similar_adapted(task: str, mechanism: str) -> str:
    """Describe the paper's accuracies after pretraining on its most similar task; "" if none.

    Examples
    --------
    >>> describe_similar_adapted("mrpc", "token_representation").partition(": ")[2][:35]
    'vanilla 64.3 at its η 50, 66.5 at 7'
    """
    alike = ALIKE.get(task, "")
    if (alike, mechanism, "vanilla") not in ADAPTED:
        return ""
    told = [f"{name} {_format_by_eta(ADAPTED[alike, mechanism, name])}" for name in OBJECTIVE_ORDER]
    return f"{_FOR_PAIRS}: {'; '.join(told)}."


_FOR_PAIRS = "The paper's task with pairs is QQP; its η of 50 to 175 match ours of 31 to 116.5"


def _format_by_eta(values: dict[int, float]) -> str:
    """Format the paper's accuracies with their η, in words."""
    (first, value), *rest = values.items()
    return ", ".join([f"{value:.1f} at its η {first}", *(f"{v:.1f} at {eta}" for eta, v in rest)])


def paper_eta(eta: float) -> int | None:
    """Return the paper's η that matches one of ours; None if none does.

    Examples
    --------
    >>> paper_eta(65), paper_eta(64)
    (100, None)
    """
    return MATCHED.get(float(eta))
