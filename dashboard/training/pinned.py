"""What of the page of training goes into a story: the part that is shown, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.defences.registry import DEFENCES
from core.defences.trained.under_noise.registry import READERS
from core.figures.representations import encoder_title
from core.story.format import UNMEASURED, Fact
from core.studies.private_points import PrivateTraining
from core.studies.training_points import Adversarial, Basis, Pretrained, UnderNoise
from core.studies.training_summary import Summary
from core.tasks.names import task_said
from core.training.accounting import PUBLIC, UNIT
from dashboard.story.pinning import Seen
from dashboard.training import missing
from dashboard.training.state import chosen

__all__ = ["seen"]

_INTERVAL = "of 95 per cent, in brackets"
_NOBODY = (
    ("Attacker", "none here: what training costs is measured, not what is read"),
    ("Access", "none: nothing is attacked"),
)


def seen(part: str, shown: Summary | None) -> Seen:
    """Return what the part that is shown rests on, and what measures it."""
    from core.story.views_read import origin

    basis = _basis(shown)
    commands = (
        [missing.command_of(part, basis.table)] if basis else missing.commands_of(part, shown)
    )
    told = () if shown is None else _facts(shown)
    if shown is None or not told:
        return Seen(facts=UNMEASURED, commands=commands)
    rests_on = (basis or shown).provenances
    return Seen(facts=(*told, *origin(rests_on)), commands=commands)


def _basis(shown: Summary | None) -> Basis | None:
    """Return what the figures of the encoder that is shown rest on, and none of another."""
    if not isinstance(shown, Adversarial):
        return None
    return shown.bases.get((str(chosen("encoder")), str(chosen("hides"))))


def _facts(shown: Summary) -> tuple[Fact, ...]:
    if isinstance(shown, Adversarial):
        return _adversary(shown)
    if isinstance(shown, UnderNoise):
        return _noise(shown)
    if isinstance(shown, Pretrained):
        return _pretraining(shown)
    return _private(shown)


def _adversary(found: Adversarial) -> tuple[Fact, ...]:
    encoder, hides = str(chosen("encoder")), str(chosen("hides"))
    trap = found.trap(encoder, hides)
    if trap is None:
        return ()
    name, _ = trap.setting.strongest
    basis = found.bases[encoder, hides]
    hidden = "words" if hides == "words" else found.label
    return (
        (
            "Data",
            f"texts of {basis.n_labels} labels, by {encoder_title(encoder)}; hidden: {hidden}",
        ),
        ("n", f"{basis.n_targets:,} texts attacked; {_seeds(basis.n_seeds)}"),
        ("Interval", _INTERVAL),
        ("Attacker", f"{found.families.get(name, name)}, fresh: trained after the defence"),
        ("Access", "the vectors behind the defence, and texts of the attacker's own with theirs"),
        ("Cost", f"taught by {basis.n_known:,} texts; the defence by {basis.n_defence:,}"),
    )


def _noise(found: UnderNoise) -> tuple[Fact, ...]:
    task, reader = str(chosen("task")), str(chosen("network"))
    points = found.of(task, reader)
    if not points:
        return ()
    some = points[0]
    return (
        ("Data", task_said(task)),
        ("n", f"{some.accuracy.n:,} texts tested; {_seeds(some.n_seeds)}"),
        ("Interval", _INTERVAL),
        *_NOBODY,
        ("Cost", f"{READERS[reader].title}, trained on {some.n_train:,} texts at each η"),
    )


def _pretraining(found: Pretrained) -> tuple[Fact, ...]:
    task, sends = str(chosen("task")), str(chosen("sends"))
    here = [p for p in found.of(task, sends) if f"{p.eta:g}" == chosen("eta")]
    if not here:
        return ()
    best = next((point for point in here if point.objective == "denoising"), here[0])
    return (
        ("Data", f"{task_said(task)}; users send: {DEFENCES[sends].title}"),
        ("n", f"{best.accuracy.n:,} texts tested; {_seeds(best.n_seeds)}"),
        ("Interval", _INTERVAL),
        *_NOBODY,
        ("Cost", f"pretrained on {best.all_tokens:,} tokens, fine-tuned on {best.n_train:,} texts"),
    )


def _private(found: PrivateTraining) -> tuple[Fact, ...]:
    heads = found.of(str(chosen("task")))
    if not heads:
        return ()
    some = heads[0]
    return (
        ("Data", task_said(some.task)),
        (
            "n",
            f"{some.accuracy.n:,} texts tested, {some.n_members:,} attacked as members; "
            f"{_seeds(some.n_seeds)}",
        ),
        ("Interval", _INTERVAL),
        ("Attacker", f"on members, by single texts: {_attacks([h.strongest for h in heads])}"),
        ("Access", "the classifier's answers, and other texts like those that it learnt from"),
        ("Cost", f"trained on {some.n_train:,} texts, at each ε; δ = {found.delta:g}"),
        ("Unit of ε", f"{UNIT}. {PUBLIC}"),
    )


def _attacks(found: Sequence[Sequence[str]]) -> str:
    names = dict.fromkeys(name for each in found for name in each)
    return ", ".join(CLASSIFIER_ATTACKS[name].title for name in names)


def _seeds(n: int) -> str:
    return f"{n} seed{'s' * (n != 1)}"
