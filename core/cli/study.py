"""Run a study: many measurements, resumable, several processes side by side."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.cli.arguments import add_column_arguments, columns_of
from core.cli.output import progress_line, show_json, show_note
from core.cli.sources import checked_reference
from core.cli.study_settings import checked_attacks, typed_settings
from core.cli.workers import add_worker_arguments, chosen_workers, without_folders
from core.errors import InvalidInputError, MissingDependencyError, similar

__all__ = ["STUDIES", "add_arguments", "run"]

WHEN_STOPPED = "What is finished is kept: the same command resumes."


def _inversion(given: argparse.Namespace) -> tuple[Any, Any]:
    from core.studies import representations

    defaults = representations.RepresentationStudy(target=given.target)
    attacks = checked_attacks(given.attacks, defaults.attacks)
    study = representations.RepresentationStudy(
        target=given.target,
        other=given.other,
        encoders=tuple(given.encoders or defaults.encoders),
        attacks=attacks,
        domains=tuple(given.domains),
        sizes=tuple(given.n_auxiliary),
        n_targets=given.n_targets,
        seeds=tuple(given.seeds),
        attack_settings=typed_settings(given.settings, attacks),
        variants=typed_settings(given.variants, attacks),
    )
    return representations, study


def _classification(given: argparse.Namespace) -> tuple[Any, Any]:
    from core.studies import classification

    defaults = classification.ClassificationStudy(target=given.target)
    study = classification.ClassificationStudy(
        target=given.target,
        title_column=given.title_column,
        label_column=given.label_column,
        other=given.other,
        encoders=tuple(given.encoders or defaults.encoders),
        domains=tuple(given.domains),
        grid=given.grid,
        seeds=tuple(given.seeds),
    )
    return classification, study


def _paragraphs(given: argparse.Namespace) -> tuple[Any, Any]:
    from core.studies import paragraphs

    defaults = paragraphs.ParagraphStudy(target=given.target)
    attacks = checked_attacks(given.attacks, defaults.attacks)
    low, high = given.paragraph_words
    study = paragraphs.ParagraphStudy(
        target=given.target,
        other=given.other,
        encoders=tuple(given.encoders or defaults.encoders),
        attacks=attacks,
        domains=tuple(given.domains),
        n_auxiliary=_one("--n-auxiliary", given.n_auxiliary),
        n_targets=given.n_targets,
        n_words=(low, high),
        seeds=tuple(given.seeds),
        attack_settings=typed_settings(given.settings, attacks),
    )
    return paragraphs, study


def _eos(given: argparse.Namespace) -> tuple[Any, Any]:
    from core.studies import eos

    study = eos.eos_study(
        target=given.target,
        other=given.other,
        encoders=tuple(given.encoders or ["minilm"]),
        domains=tuple(given.domains),
        sizes=tuple(given.n_auxiliary),
        n_targets=given.n_targets,
        seeds=tuple(given.seeds),
        attack_settings=typed_settings(given.settings, ["msp"]),
    )
    return eos, study


def _scaling(given: argparse.Namespace) -> tuple[Any, Any]:
    from core.studies import scaling

    attacks = checked_attacks(given.attacks, ["msp"])
    study = scaling.scaling_study(
        target=given.target,
        other=given.other,
        encoders=tuple(given.encoders or ["hashing", "minilm"]),
        attacks=attacks,
        domains=tuple(given.domains),
        sizes=tuple(given.n_auxiliary),
        n_targets=given.n_targets,
        seeds=tuple(given.seeds),
        attack_settings=typed_settings(given.settings, attacks),
    )
    return scaling, study


def _layers(given: argparse.Namespace) -> tuple[Any, Any]:
    from core.studies import by_layer
    from core.studies.cell_attacks import settings_for

    settings = typed_settings(given.settings, ["relaxation", "sparse"])
    study = by_layer.LayerStudy(
        target=given.target,
        other=given.other,
        encoders=tuple(given.encoders or ["minilm"]),
        domains=tuple(given.domains),
        layers=tuple(given.layers),
        n_auxiliary=_one("--n-auxiliary", given.n_auxiliary),
        n_targets=given.n_targets,
        seeds=tuple(given.seeds),
        relaxation_settings=tuple(settings_for("relaxation", settings).items()),
        sparse_settings=tuple(settings_for("sparse", settings).items()),
    )
    return by_layer, study


def _names(given: argparse.Namespace) -> tuple[Any, Any]:
    from core.studies import names

    defaults = names.NameStudy(target=given.target)
    attacks = checked_attacks(given.attacks, defaults.attacks)
    study = names.NameStudy(
        target=given.target,
        other=given.other,
        names=_listed(given.names),
        encoders=tuple(given.encoders or defaults.encoders),
        attacks=attacks,
        domains=tuple(given.domains),
        n_auxiliary=_one("--n-auxiliary", given.n_auxiliary),
        n_targets=given.n_targets,
        label_column=given.label_column,
        seeds=tuple(given.seeds),
        attack_settings=typed_settings(given.settings, attacks),
        is_anonymous=given.anonymous,
        sizes=tuple(given.sizes or defaults.sizes),
        name_sentences=tuple(given.name_sentences),
    )
    return names, study


STUDIES: dict[str, tuple[str, Callable[[argparse.Namespace], tuple[Any, Any]]]] = {
    "inversion": ("encoders × attacks: how much leaks (C22 Table 5.2)", _inversion),
    "classification": ("encoders: how well news is sorted (C22 Table 5.1)", _classification),
    "paragraphs": ("a paragraph's vector beside its sentences' (C22 Table 5.4)", _paragraphs),
    "eos": ("MSP with [EOS] among the words to predict (C22 §A.1)", _eos),
    "scaling": ("more texts known to the attacker (C22 Fig. 5.1)", _scaling),
    "layers": ("Eq. 5 and Eq. 7 by encoder layer (S&R Fig. 2)", _layers),
    "names": ("names of people: how often they are recovered (C22 Table 5.6)", _names),
}
"""What can be run: in a line, and what makes the study from the arguments."""

USUAL: dict[str, Any] = {"n_auxiliary": [40_000], "n_targets": 500, "domains": ["in", "cross"]}
OWN: dict[str, dict[str, Any]] = {
    "eos": {"domains": ["in"]},
    "scaling": {"n_auxiliary": [5_000, 10_000, 20_000, 40_000], "domains": ["in"]},
    "layers": {"n_auxiliary": [5_000], "n_targets": 50, "domains": ["cross"]},
}
"""What stands for an argument that is not given: in a study, where it is another than usual."""

NOT_USED = {
    "classification": ("attacks", "settings", "variants"),
    "paragraphs": ("variants",),
    "eos": ("attacks", "variants"),
    "scaling": ("variants",),
    "layers": ("attacks", "variants"),
    "names": ("variants",),
}
"""Arguments that a study would pass over in silence."""
AS_GIVEN = {"attacks": "--attacks", "settings": "--set", "variants": "--variant"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `study`."""
    known = "; ".join(f"{name}: {about}" for name, (about, _) in STUDIES.items())
    parser.add_argument("name", metavar="NAME", help=known)
    parser.add_argument("--spec", metavar="FILE", help="JSON with these arguments; others win")
    parser.add_argument("--target", required=True, help="the collection under study, a file")
    parser.add_argument("--other", default="wikipedia", help="the cross-domain corpus")
    parser.add_argument("--encoders", nargs="+", help="names (default: those of the study)")
    parser.add_argument("--attacks", nargs="+", help="names (inversion, paragraphs, scaling)")
    parser.add_argument("--domains", nargs="+", choices=["in", "cross"])
    parser.add_argument("--n-auxiliary", type=int, nargs="+",
                        help="sentences to train on; several make a curve")  # fmt: skip
    parser.add_argument("--n-targets", type=int, help="sentences or paragraphs under attack")
    parser.add_argument("--paragraph-words", type=int, nargs=2, default=[128, 168],
                        metavar=("LEAST", "MOST"), help="(paragraphs)")  # fmt: skip
    parser.add_argument("--layers", type=int, nargs="+", default=list(range(7)), help="(layers)")
    parser.add_argument("--set", dest="settings", action="append", default=[],
                        metavar="NAME=VALUE", help="of every attack that has it")  # fmt: skip
    parser.add_argument("--variant", dest="variants", action="append", default=[],
                        metavar="NAME=VALUE", help="measured besides (end_token=1)")  # fmt: skip
    add_column_arguments(
        parser,
        label="of classes (classification) or sections (names)",
        default_label="label_name",
        title="column of titles (classification)",
    )
    parser.add_argument("--grid", default="c22", choices=["c22", "short"], help="(classification)")
    parser.add_argument("--names", nargs="+", default=[],
                        help="people, or a file with one a line; else found (names)")  # fmt: skip
    parser.add_argument("--sizes", type=int, nargs="+", help="people in each matrix (names)")
    parser.add_argument("--name-sentences", type=int, nargs="+", default=[0, 4000],
                        help="training sentences with the names put in (names)")  # fmt: skip
    parser.add_argument("--anonymous", action=argparse.BooleanOptionalAction, default=True,
                        help="write name 1, name 2, … (names)")  # fmt: skip
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    add_worker_arguments(parser)
    parser.add_argument(
        "--out", type=Path, required=True, help="FILE.json; .md and .parquet beside"
    )
    parser.add_argument("--json", action="store_true", help="write the rows to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Measure what is not measured yet and write the rows."""
    if arguments.name not in STUDIES:
        near = similar(arguments.name, STUDIES)
        raise InvalidInputError(
            f"the study must be one of {', '.join(STUDIES)}, got {arguments.name!r}.{near}"
        )
    for name in NOT_USED.get(arguments.name, ()):
        if getattr(arguments, name):
            raise InvalidInputError(f"{arguments.name} has no use for {AS_GIVEN[name]}.")
    for name, value in {**USUAL, **OWN.get(arguments.name, {})}.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    check_texts_of(arguments)
    from core.store import cache_dir
    from core.studies.runner import failures
    from core.studies.tables import write_rows

    module, study = STUDIES[arguments.name][1](arguments)
    folder = cache_dir("studies", getattr(module, "FOLDER", arguments.name))
    with progress_line() as on_progress, chosen_workers(arguments) as n_jobs:
        rows = module.run(study, folder, n_jobs=n_jobs, on_progress=on_progress)
    rows = without_folders(rows)
    write_rows(arguments.out, arguments.name, rows, module.markdown(rows))
    if hasattr(module, "figure") and len(failures(rows)) < len(rows):
        _draw(module.figure(rows), arguments.out.with_suffix(".svg"))
    if arguments.json:
        show_json({"study": arguments.name, "rows": rows})
    else:
        print(module.markdown(rows), end="")
    if failures(rows):
        rest = "; the rest is written" if len(failures(rows)) < len(rows) else ""
        raise InvalidInputError(
            f"{len(failures(rows))} of {len(rows)} cells failed{rest}. The table says why. The "
            "same command tries them again."
        )


def check_texts_of(arguments: argparse.Namespace) -> None:
    """Check the files of a study before it is loaded; `target` then says its column, too."""
    needed = [arguments.title_column, arguments.label_column]
    others = needed if arguments.name == "classification" else []
    arguments.target = checked_reference(arguments.target, columns_of(arguments, others=others))
    arguments.other = checked_reference(arguments.other)


def _draw(figure: Any, path: Path) -> None:
    """Write the figure of a study, or say why there is none."""
    from core.figures.svg import write_svg

    try:
        write_svg(figure, path)
    except MissingDependencyError as error:
        show_note(str(error))


def _one(name: str, values: list[int]) -> int:
    if len(values) != 1:
        raise InvalidInputError(f"{name} takes one number in this study, got {len(values)}.")
    return values[0]


def _listed(given: list[str]) -> tuple[str, ...]:
    """Return the names given, or the lines of the file that is given."""
    if len(given) == 1 and Path(given[0]).is_file():
        from core.corpora.files import read_texts

        return tuple(read_texts(given[0]))
    return tuple(given)
