"""The defences, in the order in which a reader should meet them."""

from __future__ import annotations

from collections.abc import Mapping

from core.defences.entries import (
    ChainEntry,
    DefenceEntry,
    chain_of,
    promise_of,
    settings_by_stage,
    stages_of,
)
from core.defences.trained.registry import MODEL_DEFENCES, NETWORK_DEFENCES, TRAINED_DEFENCES
from core.protocols import Defence
from core.registry import Look, find, look_of, make
from core.specs import DefenceSpec

__all__ = [
    "DEFENCES",
    "ChainEntry",
    "DefenceEntry",
    "all_defences",
    "entry_of",
    "guarantee_of",
    "look_of_defence",
    "make_defence",
    "stages_of",
]

_D_CHI = (
    "d_χ-privacy of one release: outputs for two inputs differ by a factor of at most "
    "exp(η · distance)"
)
_D_CHI_ON_GRID = f"{_D_CHI}, released on a fixed grid of at most 1/(1000 η)"
_METRIC = "metric differential privacy of each token in one release: exp(ε · distance) at most"
_DP, _VECTOR = "core.defences.metric_dp.mechanisms", "core.defences.vectors"
_METRIC_DP = "core.defences.metric_dp"

DEFENCES: dict[str, DefenceEntry] = {
    "none": DefenceEntry(
        "No defence",
        "The vector as the encoder gives it: what every defence is held against.",
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
        "Every token is replaced by the one nearest to its noisy vector; a text is released.",
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
        "As text to text, but one of the tokens nearest to the noisy vector is released, by rank.",
        "after Asghar et al. (2024)",
        path=f"{_METRIC_DP}.ranked:TextToTextRanked",
        acts_on="text",
        guarantee=_D_CHI,
        formula=r"\tilde w_i = w_{(r)} \text{ of } \big\| v_w - (v_{w_i} + \kappa_i) \big\|,\quad "
        r"p(r) \propto e^{-c \eta r}",
        colour="#4A6FD0",
        symbol="cross",
    ),
    "santext": DefenceEntry(
        "SanText",
        "Every token is replaced by one drawn from all, the nearer the likelier.",
        "Yue et al. (2021)",
        path=f"{_METRIC_DP}.santext:SanText",
        acts_on="text",
        guarantee=_METRIC,
        formula=r"P[\tilde w_i = w] \propto e^{-\frac{1}{2} \varepsilon \| v_w - v_{w_i} \|}",
        colour="#C77B1B",
        symbol="circle",
    ),
    "santext_plus": DefenceEntry(
        "SanText+",
        "Rare tokens are replaced as by SanText; frequent ones only with probability p.",
        "Yue et al. (2021)",
        path=f"{_METRIC_DP}.santext:SanTextPlus",
        acts_on="text",
        guarantee="rare tokens, in one release: exp(ε · distance) / p at most; frequent ones "
        "mostly stay",
        formula=r"P[\tilde w_i = w] \propto e^{-\frac{1}{2} \varepsilon \| v_w - v_{w_i} \|} "
        r"\text{ if rare or with probability } p",
        colour="#D9A441",
        symbol="square",
    ),
    "custext": DefenceEntry(
        "CusText",
        "Every token is replaced by one of a set of K near ones, the nearer the likelier.",
        "Chen et al. (2023)",
        path=f"{_METRIC_DP}.custext:CusText",
        acts_on="text",
        guarantee="differential privacy within a set of K tokens, in one release: exp(ε) at most; "
        "the set shows",
        formula=r"P[\tilde w_i = w] \propto e^{\frac{1}{2} \varepsilon u(w_i, w)},\quad "
        r"u = -\frac{d - d_{\min}}{d_{\max} - d_{\min}}",
        colour="#E3A4C6",
        symbol="circle",
    ),
    "tem": DefenceEntry(
        "TEM",
        "As SanText, but all tokens beyond a distance γ are equally likely.",
        "Carvalho et al. (2023)",
        path=f"{_METRIC_DP}.tem:TEM",
        acts_on="text",
        guarantee="metric differential privacy of each token in one release: exp(ε · distance) at "
        "most, exp(ε · γ) beyond γ",
        formula=r"P[\tilde w_i = w] \propto e^{-\frac{1}{2} \varepsilon \min(\| v_w - v_{w_i} \|, "
        r"\gamma)}",
        colour="#4FBF9B",
        symbol="circle",
    ),
    "token_representation": DefenceEntry(
        "Token representation",
        "Noise is added to every token vector before the encoder reads them.",
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
        "The same noise is added to the vector of the whole text.",
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
        "Normal noise is added to the vector.",
        "common practice",
        path=f"{_VECTOR}:GaussianNoise",
        acts_on="vector",
        formula=r"\tilde e = e + \sigma z,\quad z \sim \mathcal N(0, I)",
        colour="#E69F00",
        symbol="triangle-up",
    ),
    "rounding": DefenceEntry(
        "Rounding",
        "Numbers of the vector are rounded.",
        "common practice",
        path=f"{_VECTOR}:Rounding",
        acts_on="vector",
        formula=r"\tilde e_i = 10^{-k}\, \text{round}(10^k e_i)",
        colour="#B5A900",
        symbol="triangle-down",
    ),
    "int8": DefenceEntry(
        "8-bit quantising",
        "Numbers of the vector are kept to 255 levels.",
        "common practice",
        path=f"{_VECTOR}:Int8",
        acts_on="vector",
        formula=r"\tilde e_i = s\, \text{round}(e_i / s),\quad s = \max_j |e_j| / 127",
        colour="#A0622D",
        symbol="x",
    ),
    "binary": DefenceEntry(
        "Binary quantising",
        "Only the signs of the vector are kept.",
        "common practice",
        path=f"{_VECTOR}:Binary",
        acts_on="vector",
        formula=r"\tilde e_i = \text{sign}(e_i) / \sqrt n",
        colour="#7A5FA8",
        symbol="cross",
    ),
    "truncation": DefenceEntry(
        "Truncation",
        "Only the first numbers of the vector are kept.",
        "common practice",
        path=f"{_VECTOR}:Truncation",
        acts_on="vector",
        formula=r"\tilde e = (e_1, \dots, e_m)",
        colour="#CC79A7",
        symbol="pentagon",
    ),
    "random_projection": DefenceEntry(
        "Random projection",
        "The vector is multiplied by a random matrix that the attacker knows.",
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
    """Return those too that are trained first, or are of a model and not of vectors."""
    return {**DEFENCES, **TRAINED_DEFENCES, **MODEL_DEFENCES, **NETWORK_DEFENCES}


def entry_of(name: str) -> DefenceEntry:
    """Return the entry of a defence, trained ones too, or of a chain such as `text_to_text+int8`.

    Raises
    ------
    InvalidInputError
        There is no such defence, or one cannot follow the other.
    """
    known = all_defences()
    is_known = all(stage in known for stage in stages_of(name))
    return _entry_among(known if is_known else DEFENCES, name)


def _entry_among(registry: Mapping[str, DefenceEntry], name: str) -> DefenceEntry:
    stages = stages_of(name)
    return find(registry, name, "defence") if len(stages) == 1 else chain_of(stages, registry)


def guarantee_of(spec: DefenceSpec) -> str:
    """Return what a defence promises with its settings, in words; empty where nothing is.

    Some settings give the promise up: the class says so by `promises_nothing`.

    Raises
    ------
    InvalidInputError
        As `make_defence`.
    """
    entry = entry_of(spec.name)
    if isinstance(entry, ChainEntry):
        own = settings_by_stage(entry, dict(spec.settings))
        told = [(entry.of[s].title, guarantee_of(DefenceSpec.of(s, own[s]))) for s in own]
        return promise_of(told)
    if not entry.guarantee:
        return ""
    told = make(entry, spec.name, dict(spec.settings), also=("seed",) * entry.takes_seed)
    return "" if getattr(told, "promises_nothing", False) else entry.guarantee


def look_of_defence(name: str) -> Look:
    """Return how a defence is drawn; a chain in its first stage's colour, by its last's symbol."""
    entry = entry_of(name)
    if isinstance(entry, ChainEntry):
        first, last = entry.stages[0], entry.stages[-1]
        return Look(look_of(all_defences(), first).colour, look_of(all_defences(), last).symbol)
    return look_of(all_defences(), name)


def make_defence(spec: DefenceSpec | str) -> Defence:
    """Build a defence from its spec, or a chain: its settings are named STAGE.SETTING.

    Of a chain's `seed` each stage that draws has one of its own.

    Raises
    ------
    InvalidInputError
        No such defence or setting, or a value outside its range; the message names what is. One
        that has to be trained is made by `make_trained_defence`.
    """
    spec = DefenceSpec(name=spec) if isinstance(spec, str) else spec
    entry, settings = _entry_among(DEFENCES, spec.name), dict(spec.settings)
    if isinstance(entry, ChainEntry):
        from core.defences.chain import Chain

        own = settings_by_stage(entry, settings)
        made = ((DEFENCES[s].acts_on, make_defence(DefenceSpec.of(s, own[s]))) for s in own)
        return Chain(tuple(made))
    defence: Defence = make(entry, spec.name, settings, also=("seed",))
    return defence
