"""Registry of the memorisation measures and attacks, simplest first."""

from __future__ import annotations

from leakscope.core.registry import Entry

_HERE = "leakscope.core.attacks.membership.memorisation"

MEMORISATION_ATTACKS: dict[str, Entry] = {
    "exposure": Entry(
        "Exposure",
        "How highly the model ranks the planted secret among all possible secrets, in bits.",
        "Carlini et al. (2019), Definitions 1, 2 and 4",
        f"{_HERE}.exposure:measure",
        formula=r"\log_2 |\mathcal R| - \log_2 \operatorname{rank}(s[r]),\quad "
        r"P(s) = \sum_i -\log_2 f(s_i \mid s_{<i})",
    ),
    "estimate": Entry(
        "Exposure, estimated",
        "The same with too many secrets to rank: from a skew-normal fit to a sample of them.",
        "Carlini et al. (2019), §4.3",
        f"{_HERE}.exposure:estimate",
        formula=r"-\log_2 \int_{-\infty}^{P(s[r])} \rho(x)\,dx",
    ),
    "perplexity": Entry(
        "Lowest perplexity",
        "Puts sampled texts with the lowest perplexity first.",
        "Carlini et al. (2021), §4.2",
        f"{_HERE}.extraction:by_perplexity",
        formula=r"-P(x) / |x|",
    ),
    "smaller": Entry(
        "Against a smaller model",
        "Puts texts first that are likely under this model but not under a smaller one.",
        "Carlini et al. (2021), §5.2",
        f"{_HERE}.extraction:by_smaller",
        formula=r"P_{\text{small}}(x) / P(x)",
    ),
    "zlib": Entry(
        "Against zlib",
        "Puts texts first that are likely under the model but hard to compress.",
        "Carlini et al. (2021), §5.2",
        f"{_HERE}.extraction:by_zlib",
        formula=r"\text{bits}_{\text{zlib}}(x) / P(x)",
    ),
    "lower_case": Entry(
        "Against lower case",
        "Puts texts first that are likely as written but not in lower case.",
        "Carlini et al. (2021), §5.2",
        f"{_HERE}.extraction:by_lower_case",
        formula=r"P(\text{lower}(x)) / P(x)",
    ),
    "one_run": Entry(
        "One-run audit",
        "Guesses which of many canaries were inserted, and derives a lower bound of ε.",
        "Steinke, Nasr & Jagielski (2023), Theorem 5.2",
        f"{_HERE}.one_run:audit",
        formula=r"\max\{\varepsilon : \Pr[\mathrm{Bin}(r, \tfrac{e^\varepsilon}"
        r"{1 + e^\varepsilon}) \ge v] \le \alpha\}",
    ),
}
