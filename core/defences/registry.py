"""Registry of the defences, in reading order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leakscope.core.defences.entries import (
    ChainEntry,
    DefenceEntry,
    chain_guarantee,
    chain_of,
    settings_by_stage,
    stages_of,
)
from leakscope.core.defences.trained.registry import (
    MODEL_DEFENCES,
    NETWORK_DEFENCES,
    TRAINED_DEFENCES,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Defence
from leakscope.core.registry import Look, find, make, marker_style
from leakscope.core.specs import DefenceSpec

_D_CHI = (
    "d_χ-privacy of one release: the probabilities of an output for two inputs differ by a factor "
    "of at most exp(η · distance)"
)
_D_CHI_ON_GRID = f"{_D_CHI}; the release is rounded to a fixed grid of at most 1/(1000 η)"
_METRIC = (
    "metric differential privacy of each token in one release: a factor of at most "
    "exp(ε · distance)"
)
_DP, _VECTOR = "leakscope.core.defences.metric_dp.mechanisms", "leakscope.core.defences.vectors"
_METRIC_DP = "leakscope.core.defences.metric_dp"

DEFENCES: dict[str, DefenceEntry] = {
    "none": DefenceEntry(
        "No defence",
        "The encoder's vector, unchanged: the baseline for every defence.",
        "baseline",
        path=f"{_VECTOR}:NoDefence",
        acts_on="vector",
        formula=r"\tilde e = e",
        colour="#D55E00",
        symbol="star",
        is_baseline=True,
    ),
    "text_to_text": DefenceEntry(
        "Text to text",
        "Adds noise to every token's vector and releases a text of the nearest tokens.",
        "Qu et al. (2021), Eq. 4",
        path=f"{_DP}:TextToText",
        acts_on="text",
        guarantee=_D_CHI,
        formula=r"\tilde w_i = \arg\min_{w} \big\| v_w - (v_{w_i} + \kappa_i) \big\|,\quad "
        r"p(\kappa) \propto e^{-\eta \|\kappa\|}",
        colour="#0072B2",
        symbol="circle",
    ),
    "text_to_text_ranked": DefenceEntry(
        "Text to text, ranked",
        "Like text to text, but releases one of the tokens nearest to the noisy vector, by rank.",
        "after Asghar et al. (2024)",
        path=f"{_DP}:TextToTextRanked",
        acts_on="text",
        guarantee=_D_CHI,
        formula=r"\tilde w_i = w_{(r)} \text{ of } \big\| v_w - (v_{w_i} + \kappa_i) \big\|,\quad "
        r"p(r) \propto e^{-c \eta r}",
        colour="#4A6FD0",
        symbol="cross",
    ),
    "santext": DefenceEntry(
        "SanText",
        "Replaces every token by a random one; nearer tokens are more likely.",
        "Yue et al. (2021)",
        path=f"{_METRIC_DP}.exponential_mechanism:SanText",
        acts_on="text",
        guarantee=_METRIC,
        formula=r"P[\tilde w_i = w] \propto e^{-\frac{1}{2} \varepsilon \| v_w - v_{w_i} \|}",
        colour="#C77B1B",
        symbol="circle",
    ),
    "santext_plus": DefenceEntry(
        "SanText+",
        "Replaces rare tokens as SanText does, and frequent tokens only with probability p.",
        "Yue et al. (2021)",
        path=f"{_METRIC_DP}.exponential_mechanism:SanTextPlus",
        acts_on="text",
        guarantee="rare tokens, in one release: a factor of at most exp(ε · distance) / p; "
        "frequent tokens mostly stay unchanged",
        formula=r"P[\tilde w_i = w] \propto e^{-\frac{1}{2} \varepsilon \| v_w - v_{w_i} \|} "
        r"\text{ if rare or with probability } p",
        colour="#D9A441",
        symbol="square",
    ),
    "custext": DefenceEntry(
        "CusText",
        "Replaces every token by one from its set of K near tokens; nearer tokens are more likely.",
        "Chen et al. (2023)",
        path=f"{_METRIC_DP}.custext:CusText",
        acts_on="text",
        guarantee="differential privacy within a set of K tokens, in one release: a factor of at "
        "most exp(ε); the set is visible",
        formula=r"P[\tilde w_i = w] \propto e^{\frac{1}{2} \varepsilon u(w_i, w)},\quad "
        r"u = -\frac{d - d_{\min}}{d_{\max} - d_{\min}}",
        colour="#E3A4C6",
        symbol="circle",
    ),
    "tem": DefenceEntry(
        "TEM",
        "Like SanText, but all tokens beyond a distance γ are equally likely.",
        "Carvalho et al. (2023)",
        path=f"{_METRIC_DP}.exponential_mechanism:TEM",
        acts_on="text",
        guarantee=f"{_METRIC}, exp(ε · γ) beyond γ",
        formula=r"P[\tilde w_i = w] \propto e^{-\frac{1}{2} \varepsilon \min(\| v_w - v_{w_i} \|, "
        r"\gamma)}",
        colour="#4FBF9B",
        symbol="circle",
    ),
    "token_representation": DefenceEntry(
        "Token representation",
        "Adds noise to every token vector before the encoder combines them.",
        "Qu et al. (2021), Eq. 3",
        path=f"{_DP}:TokenRepresentation",
        acts_on="tokens",
        guarantee=_D_CHI_ON_GRID,
        formula=r"\tilde e = \Phi\big((v_{w_i} + \kappa_i)_i\big),\quad "
        r"p(\kappa) \propto e^{-\eta \|\kappa\|}",
        colour="#56B4E9",
        symbol="square",
    ),
    "sequence_representation": DefenceEntry(
        "Sequence representation",
        "Adds the same kind of noise to the vector of the whole text.",
        "Qu et al. (2021), Eq. 3",
        path=f"{_DP}:SequenceRepresentation",
        acts_on="vector",
        guarantee=_D_CHI_ON_GRID,
        formula=r"\tilde e = e + \kappa,\quad p(\kappa) \propto e^{-\eta \|\kappa\|}",
        colour="#009E73",
        symbol="diamond",
    ),
    "gaussian": DefenceEntry(
        "Gaussian noise",
        "Adds normally distributed noise to the vector.",
        "common practice",
        path=f"{_VECTOR}:GaussianNoise",
        acts_on="vector",
        formula=r"\tilde e = e + \sigma z,\quad z \sim \mathcal N(0, I)",
        colour="#E69F00",
        symbol="triangle-up",
    ),
    "rounding": DefenceEntry(
        "Rounding",
        "Rounds the numbers of the vector.",
        "common practice",
        path=f"{_VECTOR}:Rounding",
        acts_on="vector",
        formula=r"\tilde e_i = 10^{-k}\, \text{round}(10^k e_i)",
        colour="#B5A900",
        symbol="triangle-down",
    ),
    "int8": DefenceEntry(
        "8-bit quantising",
        "Stores each number of the vector at one of 255 levels.",
        "common practice",
        path=f"{_VECTOR}:Int8",
        acts_on="vector",
        formula=r"\tilde e_i = s\, \text{round}(e_i / s),\quad s = \max_j |e_j| / 127",
        colour="#A0622D",
        symbol="x",
    ),
    "binary": DefenceEntry(
        "Binary quantising",
        "Keeps only the signs of the vector's numbers.",
        "common practice",
        path=f"{_VECTOR}:Binary",
        acts_on="vector",
        formula=r"\tilde e_i = \text{sign}(e_i) / \sqrt n",
        colour="#7A5FA8",
        symbol="cross",
    ),
    "truncation": DefenceEntry(
        "Truncation",
        "Keeps only the first numbers of the vector.",
        "common practice",
        path=f"{_VECTOR}:Truncation",
        acts_on="vector",
        formula=r"\tilde e = (e_1, \dots, e_m)",
        colour="#CC79A7",
        symbol="pentagon",
    ),
    "random_projection": DefenceEntry(
        "Random projection",
        "Multiplies the vector by a random matrix that the attacker knows.",
        "common practice",
        path=f"{_VECTOR}:RandomProjection",
        acts_on="vector",
        formula=r"\tilde e = e R,\quad R_{ij} \sim \mathcal N(0, 1/m)",
        colour="#B0447A",
        symbol="hexagon",
        keeps_space=False,
    ),
}


def all_defences() -> dict[str, DefenceEntry]:
    """Return every defence's entry by name, trained and model defences included; no chains."""
    return {**DEFENCES, **TRAINED_DEFENCES, **MODEL_DEFENCES, **NETWORK_DEFENCES}


def entry_of(name: str) -> DefenceEntry:
    """Return the registry entry of a defence, trained or not, or of a chain like `gaussian+int8`.

    Raises
    ------
    InvalidInputError
        There is no such defence, or one cannot follow the other.
    """
    known = all_defences()
    is_known = all(stage in known for stage in stages_of(name))
    return _find_entry(known if is_known else DEFENCES, name)


def _find_entry(registry: Mapping[str, DefenceEntry], name: str) -> DefenceEntry:
    """Return a defence's entry from the given registry; build it if the name is a chain's."""
    stages = stages_of(name)
    return find(registry, name, "defence") if len(stages) == 1 else chain_of(stages, registry)


def guarantee_of(spec: DefenceSpec) -> str:
    """Describe in words what a defence guarantees with its settings; "" if it is nothing.

    Some settings give up the guarantee: their class sets `has_no_guarantee`.

    Raises
    ------
    InvalidInputError
        As `make_defence`.
    """
    entry = entry_of(spec.name)
    if isinstance(entry, ChainEntry):
        own = settings_by_stage(entry, dict(spec.settings))
        guarantees = [(entry.of[s].title, guarantee_of(DefenceSpec.of(s, own[s]))) for s in own]
        return chain_guarantee(guarantees)
    if not entry.guarantee:
        return ""
    defence = make(entry, spec.name, dict(spec.settings), also=("seed",) * entry.takes_seed)
    return "" if getattr(defence, "has_no_guarantee", False) else entry.guarantee


def check_order(stages: Sequence[str]) -> None:
    """Raise InvalidInputError if a trained stage of a chain is not first or cannot be chained.

    Raises
    ------
    InvalidInputError
        It does not come first; the message names a remedy.
    """
    known = {**DEFENCES, **TRAINED_DEFENCES}
    trained = [stage for stage in stages if stage in TRAINED_DEFENCES]
    if not trained or any(stage not in known for stage in stages):
        return
    why = f"{known[trained[0]].title} is trained on vectors of unchanged texts"
    others = [s for s in stages if s in trained[1:] or known[s].acts_on in ("text", "tokens")]
    if others:
        raise InvalidInputError(
            f"{why}: it cannot be chained with {known[others[0]].title}. Choose one of them."
        )
    if stages[0] != trained[0]:
        raise InvalidInputError(f"{why}. Put it first.")


def look_of_defence(name: str) -> Look:
    """Return a defence's plot colour and symbol; a chain takes its first and last stage's."""
    entry = entry_of(name)
    if isinstance(entry, ChainEntry):
        first, last = entry.stages[0], entry.stages[-1]
        return Look(
            marker_style(all_defences(), first).colour, marker_style(all_defences(), last).symbol
        )
    return marker_style(all_defences(), name)


def make_defence(spec: DefenceSpec | str) -> Defence:
    """Build a defence that needs no training, or a chain of such, from its spec or name.

    Each stage of a chain that draws noise gets a seed derived from the chain's `seed`.

    Raises
    ------
    InvalidInputError
        No such defence or setting, or a value outside its range; the message names the valid ones.
        Use `make_trained_defence` for a trained defence.
    """
    spec = DefenceSpec(name=spec) if isinstance(spec, str) else spec
    entry, settings = _find_entry(DEFENCES, spec.name), dict(spec.settings)
    if isinstance(entry, ChainEntry):
        from leakscope.core.defences.chain import Chain

        own = settings_by_stage(entry, settings)
        made = ((DEFENCES[s].acts_on, make_defence(DefenceSpec.of(s, own[s]))) for s in own)
        return Chain(tuple(made))
    defence: Defence = make(entry, spec.name, settings, also=("seed",))
    return defence
