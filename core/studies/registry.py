"""The registry of studies, in reading order, and `run_study`.

A study is a frozen dataclass of `setting()`s with `cells()`; its module has `measure(cell, folder)`
and `markdown(rows)`, and `uses(cell)` where a cell does not say what measures it. Studies never
draw: an entry names the figures that draw their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.registry import Entry
from leakscope.core.results.rows import Cell, Row
from leakscope.core.studies.context import cell_context, check_machine
from leakscope.core.studies.runner import Measure, run_cells


@runtime_checkable
class Study(Protocol):
    """A study: settings, from which its cells follow.

    A study may have `finish(rows) -> rows`, such as to leave names out of what is written.
    """

    def cells(self) -> list[Cell]:
        """Return the cells to measure, which follow from the settings."""
        ...


@dataclass(frozen=True)
class StudyEntry(Entry):
    """The registry entry of a study: title, source, class, version and figures.

    Attributes
    ----------
    figures : tuple of (str, str)
        What is put between the table's name and `.svg`, and module:function that draws it from
        rows.
    folder : str
        Where its cells are kept, if not under its name: studies share the cells that they share.
    beside : tuple of str
        Attacks that it uses as they ship, beside the one that a cell names.
    """

    figures: tuple[tuple[str, str], ...] = ()
    folder: str = ""
    beside: tuple[str, ...] = ()

    @property
    def measure(self) -> Measure:
        """The function that measures a cell of this study."""
        found: Measure = self._module.measure
        return found

    def named(self, cell: Cell) -> Cell:
        """Return a cell with the attack, encoder and defence added that measure it.

        The study module's `uses(cell)` returns those that the cell itself does not name.
        """
        uses = getattr(self._module, "uses", None)
        return cell if uses is None else {**cell, **uses(cell)}

    def markdown(self, rows: Sequence[Row]) -> str:
        """Format the study's rows as Markdown tables."""
        return str(self._module.markdown(rows))

    @property
    def _module(self) -> Any:
        """The module that defines the study."""
        return import_module(self.path.partition(":")[0])


STUDIES: dict[str, StudyEntry] = {
    "encoders": StudyEntry(
        "Encoders",
        "encoders × attacks: how much leaks",
        "Corò (2022), Table 5.2; Song & Raghunathan (2020), Table 2",
        "leakscope.core.studies.inversion.representations:EncoderStudy",
        folder="inversion",
    ),
    "attacks": StudyEntry(
        "Attacks",
        "every attack, knowing texts of one's own kind or of another",
        "Corò (2022), Table 5.2; Song & Raghunathan (2020), Tables 1 and 2",
        "leakscope.core.studies.inversion.attacks:AttackStudy",
        beside=("probe_mlc",),
    ),
    "reconstruct": StudyEntry(
        "Sentences",
        "sentences read back in order, by their length and by how many queries are allowed",
        "of this project; measures as in vec2text (Morris et al. 2023)",
        "leakscope.core.studies.inversion.reconstruct:ReconstructStudy",
        version=3,
        figures=(("", "leakscope.core.figures.reconstruct:reconstruct_figure"),),
        beside=("search", "probe_mlc"),
    ),
    "classification": StudyEntry(
        "Classification",
        "encoders: how well news is sorted",
        "Corò (2022), Table 5.1",
        "leakscope.core.studies.inversion.classification:ClassificationStudy",
        version=2,
    ),
    "paragraphs": StudyEntry(
        "Paragraphs",
        "a paragraph's vector beside its sentences'",
        "Corò (2022), Table 5.4",
        "leakscope.core.studies.inversion.paragraphs:ParagraphStudy",
    ),
    "eos": StudyEntry(
        "End of the set",
        "MSP with [EOS] among the words to predict",
        "Corò (2022), §A.1",
        "leakscope.core.studies.inversion.eos:EosStudy",
        folder="inversion",
    ),
    "scaling": StudyEntry(
        "Scaling",
        "more texts known to the attacker",
        "Corò (2022), Fig. 5.1",
        "leakscope.core.studies.inversion.scaling:ScalingStudy",
        figures=(("", "leakscope.core.figures.learning:scaling_figure"),),
        folder="inversion",
    ),
    "layers": StudyEntry(
        "Layers",
        "Eq. 5 and Eq. 7 by encoder layer",
        "Song & Raghunathan (2020), Fig. 2",
        "leakscope.core.studies.inversion.layers:LayerStudy",
        figures=(("", "leakscope.core.figures.layers:layers_figure"),),
    ),
    "names": StudyEntry(
        "Names",
        "names of people: how often they are recovered",
        "Corò (2022), Table 5.6",
        "leakscope.core.studies.names.study:NameStudy",
        version=2,
    ),
    "deniability": StudyEntry(
        "Deniability",
        "what tokens turn into at each η, and how many come back",
        "Qu et al. (2021), Tables 1 to 3, Fig. 3 and 4",
        "leakscope.core.studies.deniability.study:DeniabilityStudy",
        figures=(
            ("-histograms", "leakscope.core.figures.deniability:histogram_panels"),
            ("-geometry", "leakscope.core.figures.deniability:geometry_panel"),
        ),
    ),
    "memorisation": StudyEntry(
        "Memorisation",
        "canaries in a language model's texts, and the audit of ε in one run",
        "Carlini et al. (2019, 2021); Steinke et al. (2023); Corò (2022), §3.1",
        "leakscope.core.studies.memorisation.study:MemorisationStudy",
        version=2,
    ),
    "audit": StudyEntry(
        "Audit",
        "the audit of mechanisms: what it catches, and how often it errs",
        "Qu et al. (2021), Eq. 2 to 4",
        "leakscope.core.studies.deniability.mechanism_audit:AuditStudy",
    ),
    "replacements": StudyEntry(
        "Replacements",
        "what replaces a token behind each mechanism: itself, a near one, or another",
        "Asghar et al. (2024); mechanisms as in the trade-off",
        "leakscope.core.studies.deniability.replacements:ReplacementStudy",
        figures=(("", "leakscope.core.figures.deniability:replacements_figure"),),
    ),
    "attributes": StudyEntry(
        "Attributes",
        "what vectors say of an attribute of their texts, such as the author",
        "Song & Raghunathan (2020), §6.3, Fig. 3",
        "leakscope.core.studies.attributes.study:AttributeStudy",
        version=2,
    ),
    "constrained": StudyEntry(
        "Under constraints",
        "classifiers that only ever see noise: what they are worth",
        "Qu et al. (2021), Tables 4 and 5",
        "leakscope.core.studies.training.constrained:ConstrainedStudy",
        version=4,
    ),
    "adaptive": StudyEntry(
        "Pretraining under noise",
        "what pretraining under noise wins back of what noise costs",
        "Qu et al. (2021), Tables 6 and 7",
        "leakscope.core.studies.training.adaptive:AdaptiveStudy",
        version=3,
        folder="constrained",
    ),
    "tradeoff": StudyEntry(
        "Trade-off",
        "defences: what each costs and what it saves",
        "Qu et al. (2021), §5; all of this project's defences",
        "leakscope.core.studies.tradeoff.study:TradeoffStudy",
        version=4,
        beside=("search", "retrieval"),
    ),
    "listed": StudyEntry(
        "From a list",
        "defences: which candidate of a list of names or numbers is in a text",
        "of this project; the trade-off's defences",
        "leakscope.core.studies.inversion.listed:ListedStudy",
    ),
    "adversarial": StudyEntry(
        "Adversarial training",
        "what an adversary reads while an encoder is trained against it, and fresh ones after it",
        "Song & Raghunathan (2020), §7, Fig. 6 and 7; Belrose et al. (2023)",
        "leakscope.core.studies.training.adversarial:AdversarialStudy",
        version=4,
        beside=("search", "msp"),
    ),
    "membership-classifiers": StudyEntry(
        "Membership, classifiers",
        "whose texts a classifier was trained on: targets, attacks and features",
        "Shejwalkar et al. (2021), Table 1 and Appendix C; Carlini et al. (2022) and others",
        "leakscope.core.studies.membership.classifiers:MembershipClassifierStudy",
        version=4,
    ),
    "private-training": StudyEntry(
        "Private training",
        "what differential privacy in training costs, and what is left to an attacker",
        "Abadi et al. (2016); Corò (2022), §3.5.1",
        "leakscope.core.studies.training.private_training:PrivateTrainingStudy",
        version=2,
    ),
    "membership-words": StudyEntry(
        "Membership of words",
        "which passages word vectors were trained on, by how rare their words are",
        "Song & Raghunathan (2020), Fig. 4",
        "leakscope.core.studies.membership.words:MembershipWordsStudy",
        version=4,
    ),
    "membership-sentences": StudyEntry(
        "Membership of sentences",
        "which pairs of sentences and which books dual encoders were trained on",
        "Song & Raghunathan (2020), Fig. 5",
        "leakscope.core.studies.membership.sentences:MembershipSentencesStudy",
        version=5,
    ),
}


def cells_of(name: str, study: Study) -> list[Cell]:
    """Return the cells of a study, each with the context added that decides its result."""
    entry = STUDIES[name]
    return [
        {**cell, **cell_context(entry.named(cell), version=entry.version, beside=entry.beside)}
        for cell in study.cells()
    ]


def _measure_on_machine(cell: Cell, folder: Path, *, measure: Measure) -> list[Row]:
    """Measure a cell; raise first if this machine's precision or encoder is not the cell's."""
    check_machine(cell)
    return list(measure(cell, folder))


def run_study(
    name: str,
    study: Study,
    folder: Path,
    *,
    cells: Sequence[Cell] | None = None,
    n_jobs: int = 1,
    on_progress: OnProgress = no_progress,
) -> list[Row]:
    """Measure the cells of a study and return its rows; finished cells are read from `folder`.

    Parameters
    ----------
    cells : sequence of dict, optional
        The result of `cells_of`, if already computed.

    Raises
    ------
    InvalidInputError
        The settings leave nothing to measure.
    """
    cells = cells_of(name, study) if cells is None else cells
    if not cells:
        raise InvalidInputError(
            f"The settings of {name} leave nothing to measure. Name more encoders or attacks."
        )
    measure = partial(_measure_on_machine, measure=STUDIES[name].measure)
    rows = run_cells(cells, measure, folder, n_jobs=n_jobs, on_progress=on_progress)
    finish = getattr(study, "finish", None)
    return list(rows if finish is None else finish(rows))
