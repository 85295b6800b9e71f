"""Infer an attribute of texts, such as the author, from their vectors, beside what words tell."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.attacks.attributes.limits import MOST_LABELS
from core.cli.arguments import (
    add_column_arguments,
    add_encoder_arguments,
    columns_of,
    encoder_spec,
    seed_number,
)
from core.cli.defended import add_defence_argument, defence_spec, odds_notes, protected
from core.cli.output import progress_line, show_json, show_note
from core.cli.sources import checked_columns
from core.corpora.labels import alike_labels, alike_note
from core.errors import InvalidInputError

if TYPE_CHECKING:
    from core.attacks.attributes.answers import Answers
    from core.attacks.attributes.draw import Draw
    from core.attacks.attributes.examples import Examples
    from core.specs import DefenceSpec

__all__ = ["add_arguments", "run"]

WHEN_STOPPED = "Nothing was written."

_PROBE, _CONTROL = "linear", "shuffled"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `attributes`."""
    add_encoder_arguments(parser)
    parser.add_argument(
        "--texts",
        type=Path,
        required=True,
        metavar="FILE",
        help="CSV, TSV, JSON, JSONL or Parquet with a column of texts and one of labels",
    )
    add_column_arguments(parser, label="of the attribute (default: author)", default_label="author")
    parser.add_argument(
        "--group-column",
        metavar="NAME",
        help="column of what texts come from, such as a book or a user: labelled texts and targets "
        "are then of different ones",
    )
    parser.add_argument(
        "--split",
        choices=("row", "run", "group"),
        help="what is parted: groups (default with --group-column), runs of consecutive texts of a "
        "group, or single texts (default without)",
    )
    parser.add_argument(
        "--n-per-label", type=int, default=10, help="labelled texts of each label (default: 10)"
    )
    parser.add_argument(
        "--n-labels",
        type=int,
        default=0,
        help=f"labels, drawn by chance, 2 to {MOST_LABELS:,}; a file may have more (default: all "
        f"that have enough texts, and where these are more than {MOST_LABELS:,} it is refused)",
    )
    parser.add_argument(
        "--n-targets", type=int, default=250, help="targets of each label at most (default: 250)"
    )
    parser.add_argument("--seed", type=seed_number, default=0, help="of the drawing (default: 0)")
    add_defence_argument(parser)
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Draw, attack, and print how often each attack is right. Nothing is written to disk."""
    defence = defence_spec(arguments, seed=arguments.seed)
    examples = _examples(arguments)
    split = arguments.split or ("row" if examples.groups is None else "group")
    drawn = _drawn(arguments, examples, split)
    _show_notes(examples, drawn, split)
    found = _found(arguments, examples, drawn, split, defence)
    told = {
        "texts": arguments.texts.name,
        "label_column": arguments.label_column,
        "group_column": arguments.group_column,
        "split": split,
        "encoder": arguments.encoder,
        **({} if arguments.defence is None else {"defence": arguments.defence}),
        "attack": _PROBE,
        "n_labels": len(drawn.labels),
        "n_per_label": arguments.n_per_label,
        "n_labels_left_out": drawn.n_left_out,
        "n_unlabelled": examples.n_unlabelled,
        "labels_alike": [list(group) for group in alike_labels(examples.labels)],
        "n_near_duplicates": drawn.n_near_duplicates,
        "seed": arguments.seed,
        **_record(found.pop(_PROBE), drawn, arguments.seed),
        **{name: _record(answers, drawn, arguments.seed) for name, answers in found.items()},
    }
    if arguments.json:
        show_json(told)
    else:
        _show(told, list(found))


def _examples(arguments: argparse.Namespace) -> Examples:
    """Return the labelled texts, their columns checked before anything heavy is loaded."""
    if arguments.label_column == arguments.group_column:
        raise InvalidInputError("--label-column and --group-column must be two columns.")
    others = [arguments.group_column] if arguments.group_column else []
    checked_columns(
        arguments.texts, columns_of(arguments, label=arguments.label_column, others=others)
    )
    from core.attacks.attributes.examples import read_examples

    return read_examples(
        arguments.texts,
        label_column=arguments.label_column,
        group_column=arguments.group_column,
        text_column=arguments.text_column,
    )


def _drawn(arguments: argparse.Namespace, examples: Examples, split: str) -> Draw:
    from core.attacks.attributes.draw import Plan, draw

    plan = Plan(
        n_labels=arguments.n_labels,
        n_per_label=arguments.n_per_label,
        n_targets=arguments.n_targets,
        split=split,
        seed=arguments.seed,
    )
    return draw(examples, plan)


def _show_notes(examples: Examples, drawn: Draw, split: str) -> None:
    if note := alike_note(examples.labels, what="labels"):
        show_note(note)
    if examples.n_unlabelled:
        show_note(f"{examples.n_unlabelled:,} texts have no label and are left out.")
    if drawn.n_left_out:
        show_note(f"{drawn.n_left_out:,} labels have too few texts and are left out.")
    if drawn.n_near_duplicates:
        show_note(
            f"{drawn.n_near_duplicates:,} targets nearly repeat a labelled text and are left out."
        )
    if split == "row":
        show_note(
            "Every text stands for itself. If several come from one document, name its column "
            "with --group-column: texts of one are alike, and flatter the attack."
        )


def _found(
    arguments: argparse.Namespace, examples: Examples, drawn: Draw, split: str,
    defence: DefenceSpec | None,
) -> dict[str, Answers]:  # fmt: skip
    """Return the answers of the probe, of the baselines and of the control, by name.

    Labelled texts are behind the defence as the targets are: who attacks knows it.
    """
    from core.attacks.attributes.experiment import Case, answer_all, share_vectors
    from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS, make_attribute_attack
    from core.encoders import load_encoder

    case = Case(arguments.seed, split, len(drawn.labels), arguments.n_per_label)
    control = Case(arguments.seed, split, case.n_labels, case.n_per_label, is_shuffled=True)
    draws = {arguments.seed: drawn}
    with progress_line() as on_progress:
        plain = load_encoder(encoder_spec(arguments))
        encoder = protected(plain, defence)
        shared = share_vectors(examples, draws, encoder, on_progress)
        probe, shuffled = answer_all(
            make_attribute_attack(_PROBE), [case, control], examples, draws, shared, on_progress
        )
        found = {_PROBE: probe.answers}
        for name, entry in ATTRIBUTE_ATTACKS.items():
            if entry.is_baseline:
                attack = make_attribute_attack(name)
                (one,) = answer_all(attack, [case], examples, draws, on_progress=on_progress)
                found[name] = one.answers
    for note in odds_notes(defence, plain) if defence else ():
        show_note(note)
    return found | {_CONTROL: shuffled.answers}


def _record(answers: Answers, drawn: Draw, seed: int) -> dict[str, Any]:
    """Return each accuracy with its interval, and what guessing reaches.

    Balanced accuracy where labels are unequal; top-5 where there are more than five labels.
    """
    scores = {"top1": answers.top(1, seed)}
    if answers.is_unequal:
        scores["balanced"] = answers.balanced(seed)
    if len(drawn.labels) > 5:
        scores["top5"] = answers.top(5, seed)
    told: dict[str, Any] = {}
    for name, score in scores.items():
        told |= score.to_record(name)
        told["chance" if name == "top1" else f"chance_{name}"] = score.chance
    return {
        **told,
        "n": len(drawn.truth),
        "n_groups": None if drawn.groups is None else len(set(drawn.groups)),
        "n_units": len(drawn.truth) if drawn.units is None else len(set(drawn.units)),
    }


_TITLES = {"top1": "top-1", "balanced": "balanced", "top5": "top-5"}


def _show(told: dict[str, Any], others: list[str]) -> None:
    from core.results import Score

    print(
        f"{told['label_column']} of {told['texts']} from {told['encoder']}"
        f"{' behind ' + told['defence'] if 'defence' in told else ''}: {told['n_labels']:,} "
        f"labels, {told['n_per_label']} labelled texts of each, {told['n']:,} targets, split by "
        f"{told['split']}"
    )
    measures = [name for name in _TITLES if name in told]
    print(f"  {'':<14}" + "".join(f"{f'{_TITLES[name]} [95 %]':<26}" for name in measures))
    for name in (_PROBE, *others):
        record = told if name == _PROBE else told[name]
        said = (Score.of_record(record, measure).said(3) for measure in measures)
        print(f"  {name:<14}" + "".join(f"{each:<26}" for each in said))
    chances = (told["chance" if name == "top1" else f"chance_{name}"] for name in measures)
    print(f"  {'guessing':<14}" + "".join(f"{chance:<26.3f}" for chance in chances))
    if "balanced" in told:
        print("  Labels are unequal: balanced accuracy is the mean of each label's accuracy.")
