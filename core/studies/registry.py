"""The studies, in the order in which a reader should meet them, and how one is run.

A study is a frozen dataclass of `setting()`s with `cells()`; its module has `measure(cell, folder)`
and `markdown(rows)`, and `uses(cell)` where a cell does not say what measures it. Studies never
draw: an entry names the figures that draw their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.registry import Entry
from core.studies.context import check_machine, context_of
from core.studies.rows import Cell, Row
from core.studies.runner import Measure, run_cells

__all__ = ["STUDIES", "Study", "StudyEntry", "cells_of", "run_study"]


@runtime_checkable
class Study(Protocol):
    """What to measure: settings, and the cells that follow from them.

    A study may have `finish(rows) -> rows`, such as to leave names out of what is written.
    """

    def cells(self) -> list[Cell]:
        """Return what is to be measured, cell by cell."""
        ...


@dataclass(frozen=True)
class StudyEntry(Entry):
    """What a user should know before running a study, and where its class is.

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
        """What measures a cell."""
        found: Measure = self._module.measure
        return found

    def named(self, cell: Cell) -> Cell:
        """Return a cell with the attack, encoder and defence that measure it.

        Those that its module's `uses(cell)` tells, where the cell itself does not name them.
        """
        uses = getattr(self._module, "uses", None)
        return cell if uses is None else {**cell, **uses(cell)}

    def markdown(self, rows: Sequence[Row]) -> str:
        """Return the rows as Markdown tables."""
        return str(self._module.markdown(rows))

    @property
    def _module(self) -> Any:
        return import_module(self.path.partition(":")[0])


STUDIES: dict[str, StudyEntry] = {
    "encoders": StudyEntry(
        "Encoders",
        "encoders × attacks: how much leaks",
        "Corò (2022), Table 5.2; Song & Raghunathan (2020), Table 2",
        "core.studies.encoders:EncoderStudy",
        folder="inversion",
    ),
    "attacks": StudyEntry(
        "Attacks",
        "every attack, knowing texts of one's own kind or of another",
        "Corò (2022), Table 5.2; Song & Raghunathan (2020), Tables 1 and 2",
        "core.studies.attacks:AttackStudy",
        beside=("probe_mlc",),
    ),
    "reconstruct": StudyEntry(
        "Sentences",
        "sentences read back in order, by their length and by how many queries are allowed",
        "of this project; measures as in vec2text (Morris et al. 2023)",
        "core.studies.reconstruct:ReconstructStudy",
        version=3,
        figures=(("", "core.figures.reconstruct:reconstruct_figure"),),
        beside=("search", "probe_mlc"),
    ),
    "classification": StudyEntry(
        "Classification",
        "encoders: how well news is sorted",
        "Corò (2022), Table 5.1",
        "core.studies.classification:ClassificationStudy",
        version=2,
    ),
    "paragraphs": StudyEntry(
        "Paragraphs",
        "a paragraph's vector beside its sentences'",
        "Corò (2022), Table 5.4",
        "core.studies.paragraphs:ParagraphStudy",
    ),
    "eos": StudyEntry(
        "End of the set",
        "MSP with [EOS] among the words to predict",
        "Corò (2022), §A.1",
        "core.studies.eos:EosStudy",
        folder="inversion",
    ),
    "scaling": StudyEntry(
        "Scaling",
        "more texts known to the attacker",
        "Corò (2022), Fig. 5.1",
        "core.studies.scaling:ScalingStudy",
        figures=(("", "core.figures.learning:scaling_figure"),),
        folder="inversion",
    ),
    "layers": StudyEntry(
        "Layers",
        "Eq. 5 and Eq. 7 by encoder layer",
        "Song & Raghunathan (2020), Fig. 2",
        "core.studies.layers:LayerStudy",
        figures=(("", "core.figures.layers:layers_figure"),),
    ),
    "names": StudyEntry(
        "Names",
        "names of people: how often they are recovered",
        "Corò (2022), Table 5.6",
        "core.studies.names:NameStudy",
        version=2,
    ),
    "deniability": StudyEntry(
        "Deniability",
        "what tokens turn into at each η, and how many come back",
        "Qu et al. (2021), Tables 1 to 3, Fig. 3 and 4",
        "core.studies.deniability:DeniabilityStudy",
        figures=(
            ("-histograms", "core.figures.deniability_panels:histogram_panels"),
            ("-geometry", "core.figures.deniability_panels:geometry_panel"),
        ),
    ),
    "memorisation": StudyEntry(
        "Memorisation",
        "canaries in a language model's texts, and the audit of ε in one run",
        "Carlini et al. (2019, 2021); Steinke et al. (2023); Corò (2022), §3.1",
        "core.studies.memorisation:MemorisationStudy",
        version=2,
    ),
    "audit": StudyEntry(
        "Audit",
        "the audit of mechanisms: what it catches, and how often it errs",
        "Qu et al. (2021), Eq. 2 to 4",
        "core.studies.audit:AuditStudy",
    ),
    "replacements": StudyEntry(
        "Replacements",
        "what replaces a token behind each mechanism: itself, a near one, or another",
        "Asghar et al. (2024); mechanisms as in the trade-off",
        "core.studies.replacements:ReplacementStudy",
        figures=(("", "core.figures.replacements:replacements_figure"),),
    ),
    "attributes": StudyEntry(
        "Attributes",
        "what vectors say of an attribute of their texts, such as the author",
        "Song & Raghunathan (2020), §6.3, Fig. 3",
        "core.studies.attributes:AttributeStudy",
        version=2,
    ),
    "constrained": StudyEntry(
        "Under constraints",
        "classifiers that only ever see noise: what they are worth",
        "Qu et al. (2021), Tables 4 and 5",
        "core.studies.constrained:ConstrainedStudy",
        version=4,
    ),
    "adaptive": StudyEntry(
        "Pretraining under noise",
        "what pretraining under noise wins back of what noise costs",
        "Qu et al. (2021), Tables 6 and 7",
        "core.studies.adaptive:AdaptiveStudy",
        version=3,
        folder="constrained",
    ),
    "tradeoff": StudyEntry(
        "Trade-off",
        "defences: what each costs and what it saves",
        "Qu et al. (2021), §5; all of this project's defences",
        "core.studies.tradeoff:TradeoffStudy",
        version=4,
        beside=("search", "retrieval"),
    ),
    "listed": StudyEntry(
        "From a list",
        "defences: which candidate of a list of names or numbers is in a text",
        "of this project; the trade-off's defences",
        "core.studies.listed:ListedStudy",
    ),
    "adversarial": StudyEntry(
        "Adversarial training",
        "what an adversary reads while an encoder is trained against it, and fresh ones after it",
        "Song & Raghunathan (2020), §7, Fig. 6 and 7; Belrose et al. (2023)",
        "core.studies.adversarial:AdversarialStudy",
        version=4,
        beside=("search", "msp"),
    ),
    "membership-classifiers": StudyEntry(
        "Membership, classifiers",
        "whose texts a classifier was trained on: targets, attacks and features",
        "Shejwalkar et al. (2021), Table 1 and Appendix C; Carlini et al. (2022) and others",
        "core.studies.membership_classifiers:MembershipClassifierStudy",
        version=4,
    ),
    "private-training": StudyEntry(
        "Private training",
        "what differential privacy in training costs, and what is left to an attacker",
        "Abadi et al. (2016); Corò (2022), §3.5.1",
        "core.studies.private_training:PrivateTrainingStudy",
        version=2,
    ),
    "membership-words": StudyEntry(
        "Membership of words",
        "which passages word vectors were trained on, by how rare their words are",
        "Song & Raghunathan (2020), Fig. 4",
        "core.studies.membership_words:MembershipWordsStudy",
        version=4,
    ),
    "membership-sentences": StudyEntry(
        "Membership of sentences",
        "which pairs of sentences and which books dual encoders were trained on",
        "Song & Raghunathan (2020), Fig. 5",
        "core.studies.membership_sentences:MembershipSentencesStudy",
        version=5,
    ),
}


def cells_of(name: str, study: Study) -> list[Cell]:
    """Return what a study measures, with what decides it beside the study's own settings."""
    entry = STUDIES[name]
    return [
        {**cell, **context_of(entry.named(cell), version=entry.version, beside=entry.beside)}
        for cell in study.cells()
    ]


@dataclass(frozen=True)
class _OnMachine:
    """Measures a cell where the machine is one that the study's rows can come from."""

    measure: Measure

    def __call__(self, cell: Cell, folder: Path) -> list[Row]:
        check_machine(cell)
        return list(self.measure(cell, folder))


def run_study(
    name: str,
    study: Study,
    folder: Path,
    *,
    cells: Sequence[Cell] | None = None,
    n_jobs: int = 1,
    on_progress: OnProgress = no_progress,
) -> list[Row]:
    """Return the rows of a study; cells that were measured before are read from `folder`.

    Parameters
    ----------
    cells : sequence of dict, optional
        What `cells_of` returned, where it was asked before.

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
    measure = _OnMachine(STUDIES[name].measure)
    rows = run_cells(cells, measure, folder, n_jobs=n_jobs, on_progress=on_progress)
    finish = getattr(study, "finish", None)
    return list(rows if finish is None else finish(rows))
