"""Infer an attribute of texts, such as the author, from their vectors; compare with word counts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core.attacks.attributes.draw import Draw, Plan, draw
from leakscope.core.cli.shared.arguments import (
    add_column_arguments,
    add_encoder_arguments,
    add_settings,
    build_from_arguments,
    columns_of,
    encoder_spec,
)
from leakscope.core.cli.shared.defended import add_defence_argument, defence_spec, odds_notes
from leakscope.core.cli.shared.output import progress_line, show_json, show_note
from leakscope.core.cli.shared.sources import checked_columns
from leakscope.core.corpora.labels import near_identical_labels, near_identical_note
from leakscope.core.errors import InvalidInputError

if TYPE_CHECKING:
    from leakscope.core.attacks.attributes.answers import Answers
    from leakscope.core.attacks.attributes.examples import Examples
    from leakscope.core.specs import DefenceSpec

EXAMPLE = "leakscope attributes --texts letters.csv --label-column author"
WHEN_STOPPED = "Nothing was written."

_PROBE, _CONTROL = "linear", "shuffled"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `attributes` to its parser."""
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
        help="column of the texts' source, such as a book or a user; labelled texts and targets "
        "then come from different sources",
    )
    parser.add_argument(
        "--split",
        choices=("row", "run", "group"),
        help="unit of the split: groups (default with --group-column), runs of consecutive texts "
        "of a group, or single texts (default without)",
    )
    add_settings(parser, Plan, "n_per_label", "n_labels", "n_targets", "seed")
    add_defence_argument(parser)
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def run(arguments: argparse.Namespace) -> None:
    """Run the attribute attack, its baselines and its control; print their accuracies."""
    defence = defence_spec(arguments, seed=arguments.seed)
    examples = _read_labelled_texts(arguments)
    split = arguments.split or ("row" if examples.groups is None else "group")
    drawn = draw(examples, build_from_arguments(arguments, Plan, split=split))
    _show_notes(examples, drawn, split)
    found = _run_attacks(arguments, examples, drawn, split, defence)
    record = {
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
        "labels_alike": [list(group) for group in near_identical_labels(examples.labels)],
        "n_near_duplicates": drawn.n_near_duplicates,
        "seed": arguments.seed,
        **_accuracy_record(found.pop(_PROBE), drawn, arguments.seed),
        **{
            name: _accuracy_record(answers, drawn, arguments.seed)
            for name, answers in found.items()
        },
    }
    if arguments.json:
        show_json(record)
    else:
        _print_accuracies(record, list(found))


def _read_labelled_texts(arguments: argparse.Namespace) -> Examples:
    """Check the file's columns, then read its labelled texts."""
    if arguments.label_column == arguments.group_column:
        raise InvalidInputError("--label-column and --group-column must be different columns.")
    others = [arguments.group_column] if arguments.group_column else []
    checked_columns(
        arguments.texts, columns_of(arguments, label=arguments.label_column, others=others)
    )
    from leakscope.core.attacks.attributes.examples import read_examples

    return read_examples(
        arguments.texts,
        label_column=arguments.label_column,
        group_column=arguments.group_column,
        text_column=arguments.text_column,
    )


def _show_notes(examples: Examples, drawn: Draw, split: str) -> None:
    """Print notes on near-identical labels, left-out texts and the split."""
    if note := near_identical_note(examples.labels, what="labels"):
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
            "Texts are split one by one. If several come from the same document, name the column "
            "of documents with --group-column: similar texts inflate the scores."
        )


def _run_attacks(
    arguments: argparse.Namespace,
    examples: Examples,
    drawn: Draw,
    split: str,
    defence: DefenceSpec | None,
) -> dict[str, Answers]:
    """Run the linear probe, all baselines and the permuted-label control; return answers by name.

    Labelled texts are behind the defence as the targets are: who attacks knows it.
    """
    from leakscope.core.attacks.attributes.experiment import Case, encode_draws, run_cases
    from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS, make_attribute_attack
    from leakscope.core.defences.adaptive_attack import defended_encoder
    from leakscope.core.encoders import load_encoder

    case = Case(arguments.seed, split, len(drawn.labels), arguments.n_per_label)
    control = Case(arguments.seed, split, case.n_labels, case.n_per_label, is_shuffled=True)
    draws = {arguments.seed: drawn}
    with progress_line() as on_progress:
        plain = load_encoder(encoder_spec(arguments))
        encoder = defended_encoder(plain, defence)
        shared = encode_draws(examples, draws, encoder, on_progress)
        probe, shuffled = run_cases(
            make_attribute_attack(_PROBE), [case, control], examples, draws, shared, on_progress
        )
        found = {_PROBE: probe.answers}
        for name, entry in ATTRIBUTE_ATTACKS.items():
            if entry.is_baseline:
                attack = make_attribute_attack(name)
                (one,) = run_cases(attack, [case], examples, draws, on_progress=on_progress)
                found[name] = one.answers
    for note in odds_notes(defence, plain) if defence else ():
        show_note(note)
    return found | {_CONTROL: shuffled.answers}


def _accuracy_record(answers: Answers, drawn: Draw, seed: int) -> dict[str, Any]:
    """Return an attack's accuracies, their intervals, chance and sample sizes as a flat dictionary.

    Balanced accuracy where labels are unequal; top-5 where there are more than five labels.
    """
    scores = {"top1": answers.top(1, seed)}
    if answers.is_unequal:
        scores["balanced"] = answers.balanced(seed)
    if len(drawn.labels) > 5:
        scores["top5"] = answers.top(5, seed)
    record: dict[str, Any] = {}
    for name, score in scores.items():
        record |= score.to_record(name)
        record["chance" if name == "top1" else f"chance_{name}"] = score.chance
    return {
        **record,
        "n": len(drawn.truth),
        "n_groups": None if drawn.groups is None else len(set(drawn.groups)),
        "n_units": len(drawn.truth) if drawn.units is None else len(set(drawn.units)),
    }


_TITLES = {"top1": "top-1", "balanced": "balanced", "top5": "top-5"}


def _print_accuracies(found: dict[str, Any], others: list[str]) -> None:
    """Print a table with the accuracies of the probe, the baselines and the control."""
    from leakscope.core.results import Score

    print(
        f"{found['label_column']} of {found['texts']} from {found['encoder']}"
        f"{' behind ' + found['defence'] if 'defence' in found else ''}: {found['n_labels']:,} "
        f"labels, {found['n_per_label']} labelled texts of each, {found['n']:,} targets, split by "
        f"{found['split']}"
    )
    measures = [name for name in _TITLES if name in found]
    print(f"  {'':<14}" + "".join(f"{f'{_TITLES[name]} [95 % CI]':<26}" for name in measures))
    for name in (_PROBE, *others):
        record = found if name == _PROBE else found[name]
        formatted = (Score.of_record(record, measure).format(3) for measure in measures)
        print(f"  {name:<14}" + "".join(f"{each:<26}" for each in formatted))
    chances = (found["chance" if name == "top1" else f"chance_{name}"] for name in measures)
    print(f"  {'guessing':<14}" + "".join(f"{chance:<26.3f}" for chance in chances))
    if "balanced" in found:
        print("  Labels differ in size: balanced accuracy is the mean of each label's accuracy.")
