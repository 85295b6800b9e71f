"""What is asked of a language model about its texts, in the order in which to meet it."""

from __future__ import annotations

from core.registry import Entry

__all__ = ["MEMORISATION_ATTACKS"]

_HERE = "core.attacks.membership.memorisation"

MEMORISATION_ATTACKS: dict[str, Entry] = {
    "exposure": Entry(
        "Exposure",
        "How far up a planted text stands among all that could stand in its place, in bits.",
        "Carlini et al. (2019), Definitions 1, 2 and 4",
        f"{_HERE}.exposure:measure",
        formula=r"\log_2 |\mathcal R| - \log_2 \operatorname{rank}(s[r]),\quad "
        r"P(s) = \sum_i -\log_2 f(s_i \mid s_{<i})",
    ),
    "estimate": Entry(
        "Exposure, estimated",
        "The same where there are too many to rank: by a skew-normal law of a sample of them.",
        "Carlini et al. (2019), §4.3",
        f"{_HERE}.exposure:estimate",
        formula=r"-\log_2 \int_{-\infty}^{P(s[r])} \rho(x)\,dx",
    ),
    "perplexity": Entry(
        "Least perplexity",
        "Texts drawn from the model, those first that surprise it least.",
        "Carlini et al. (2021), §4.2",
        f"{_HERE}.rankings:by_perplexity",
        formula=r"-P(x) / |x|",
    ),
    "smaller": Entry(
        "Against a smaller model",
        "Those first that surprise a smaller model most and this one least.",
        "Carlini et al. (2021), §5.2",
        f"{_HERE}.rankings:by_smaller",
        formula=r"P_{\text{small}}(x) / P(x)",
    ),
    "zlib": Entry(
        "Against zlib",
        "Those first that a compressor finds hard and this model does not.",
        "Carlini et al. (2021), §5.2",
        f"{_HERE}.rankings:by_zlib",
        formula=r"\text{bits}_{\text{zlib}}(x) / P(x)",
    ),
    "lower_case": Entry(
        "Against lower case",
        "Those first that are likely in one spelling alone.",
        "Carlini et al. (2021), §5.2",
        f"{_HERE}.rankings:by_lower_case",
        formula=r"P(\text{lower}(x)) / P(x)",
    ),
    "one_run": Entry(
        "Audit in one run",
        "Guesses which of many canaries were put in, and bounds ε of differential privacy by it.",
        "Steinke, Nasr & Jagielski (2023), Theorem 5.2",
        f"{_HERE}.one_run:audit",
        formula=r"\max\{\varepsilon : \Pr[\mathrm{Bin}(r, \tfrac{e^\varepsilon}"
        r"{1 + e^\varepsilon}) \ge v] \le \alpha\}",
    ),
}
