"""Leakscope from Python: audit vectors, invert them, evaluate an attack, protect texts.

These four functions put together the parts of the engine, `leakscope.core`. Libraries are imported
when a function first needs them.

Examples
--------
>>> from leakscope import invert, protect
>>> text = "The finance minister resigned after a vote in Berlin."
>>> (found,) = invert(text, attack="probe_mlc")
>>> "minister" in found.word_set
True
>>> protect([text], "int8").shape
(1, 384)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

# The wheel has core, dashboard, pages and assets in this folder; a checkout has them beside it.
__path__ = [
    *__path__,
    *(str(file.parent) for file in Path(__file__).resolve().parents[1].glob("pyproject.toml")),
]

from leakscope.core import __version__
from leakscope.core.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from leakscope.core.audit.audit import AuditReport
    from leakscope.core.audit.sources import VectorSource
    from leakscope.core.protocols import Encoder, InversionAttack, OnProgress, Vectors
    from leakscope.core.results import EvaluationResult, Recovery
    from leakscope.core.specs import DefenceSpec, EncoderSpec

__all__ = ["__version__", "audit", "evaluate", "invert", "protect"]


def audit(
    source: str | Path | ArrayLike | VectorSource,
    texts: Sequence[str] | Path | None = None,
    *,
    encoder: str | None = None,
    candidates: Sequence[str] = (),
    attack: str | None = None,
    defence: str | DefenceSpec | None = None,
    n: int = 500,
    n_identifiers: int = 0,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> AuditReport:
    """Attack your own vectors and return an AuditReport on what an attacker recovers from them.

    Parameters
    ----------
    source : str, Path, array-like of shape (n, d), or VectorSource
        A path, a store such as `chroma:./db#letters`, or the vectors themselves.
    texts : sequence of n str, or Path
        The texts of the vectors, one for each row in the same order; by default those in the
        source. Without texts the result is an estimate.
    encoder : str, optional
        The encoder of the vectors: `minilm`, `st:ID` or `mlm:ID`; identified by default.
    candidates : sequence of str
        Encoders that may have made the vectors, besides the bundled one.
    attack : str, optional
        The attack; by default the strongest one that needs no training.
    defence : str or DefenceSpec, optional
        The defence that the vectors passed, as in `gaussian:sigma=0.05`. The attacker knows it.
    n : int
        The number of rows to attack, drawn at random; at least 30.
    n_identifiers : int
        The most items of personal data to test.
    seed : int
        Seed of the drawn rows and of the intervals.
    on_progress : callable, optional
        Called with a fraction in [0, 1] and a sentence.

    Returns
    -------
    AuditReport
        `sentence` is the answer, `f1` the score with its interval, and `not_tested` lists what
        the audit did not test.

    Raises
    ------
    InvalidInputError
        The source cannot be read, or its vectors and the texts do not fit together.
    MissingDependencyError
        The library that reads the source is not installed.
    """
    from leakscope.core.audit.audit import AuditSpec
    from leakscope.core.audit.audit import audit as run_audit
    from leakscope.core.protocols import no_progress

    spec = AuditSpec(
        n=n,
        seed=seed,
        encoder=encoder,
        candidates=tuple(candidates),
        attack=attack,
        defence=_read_defence_spec(defence, seed),
        n_identifiers=n_identifiers,
    )
    return run_audit(
        _open_source(source),
        spec,
        texts=None if texts is None else _load_texts(texts),
        on_progress=on_progress or no_progress,
    )


def invert(
    texts_or_vectors: str | Sequence[str] | NDArray[Any],
    *,
    encoder: str | EncoderSpec | Encoder = "minilm",
    attack: str | None = None,
    defence: str | DefenceSpec | None = None,
    on_progress: OnProgress | None = None,
) -> list[Recovery]:
    """Recover words from vectors; texts are encoded first. Return one Recovery per text or vector.

    Parameters
    ----------
    texts_or_vectors : str, sequence of str, or ndarray of shape (n, d)
        Texts, which are encoded first, or vectors of `encoder`. For defended vectors, give their
        `defence` too.
    encoder : str, EncoderSpec or Encoder
    attack : str, optional
        The attack; by default the strongest one that needs no training.
    defence : str or DefenceSpec, optional
        As in `gaussian:sigma=0.05` or `text_to_text:eta=60+int8`. The attacker knows it.
    on_progress : callable, optional
        Called with a fraction in [0, 1] and a sentence.

    Returns
    -------
    list of Recovery
        One for each text or vector: its `words` with the attack's confidence, most confident
        first if the attack ranks them.

    Raises
    ------
    InvalidInputError
        There is no such encoder, attack or defence, a text cannot be encoded, or the vectors have
        another width.
    """
    from leakscope.core.protocols import no_progress
    from leakscope.core.text import check_texts

    progress = on_progress or no_progress
    given: Any = [texts_or_vectors] if isinstance(texts_or_vectors, str) else texts_or_vectors
    is_text = isinstance(given, Sequence) and any(isinstance(text, str) for text in given)
    known = check_texts(given) if is_text else _check_vectors(given)
    opened = _encoder_of(encoder)
    ready, changed = _open_adapted_attack(
        opened, attack, _read_defence_spec(defence, None), progress
    )
    vectors = changed.encode(known, progress) if isinstance(known, list) else known
    return ready.invert(changed, vectors, progress)


def evaluate(
    texts: Sequence[str] | Path,
    *,
    encoder: str | EncoderSpec | Encoder = "minilm",
    attack: str | None = None,
    defence: str | DefenceSpec | None = None,
    limit: int | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> EvaluationResult:
    """Attack the vectors of unseen texts; return the attack's scores beside those of guessing.

    Parameters
    ----------
    texts : sequence of str, or Path
    encoder, attack, defence, on_progress
        As for `invert`.
    limit : int, optional
        The number of texts to draw; all by default.
    seed : int
        Seed of the drawn texts, of the defence's noise and of the intervals.

    Returns
    -------
    EvaluationResult
        `scores` holds F1, precision and recall in per cent with 95 % intervals, `baseline` the
        same for an attacker who never sees a vector; `sentence` puts them in words.

    Raises
    ------
    InvalidInputError
        There is no such encoder, attack or defence, or the texts cannot be used.
    """
    from leakscope.core.attacks.inversion.evaluation import attack_vocabulary
    from leakscope.core.attacks.inversion.evaluation import evaluate as score
    from leakscope.core.attacks.inversion.lifted import LiftedAttack
    from leakscope.core.defences.adaptive_attack import relabel_result
    from leakscope.core.protocols import no_progress
    from leakscope.core.specs import AttackSpec

    progress = on_progress or no_progress
    given = _load_texts(texts)
    opened = _encoder_of(encoder)
    ready, changed = _open_adapted_attack(
        opened, attack, _read_defence_spec(defence, seed), progress
    )
    name = texts.name if isinstance(texts, Path) else "texts"
    if not isinstance(ready, LiftedAttack):
        return score(ready, changed, given, limit=limit, seed=seed, name=name, on_progress=progress)
    ready.vocabulary_ = attack_vocabulary(ready.attack, opened)
    found = score(ready, changed, given, limit=limit, seed=seed, name=name, on_progress=progress)
    return relabel_result(found, ready, opened, AttackSpec.of(_attack_name(attack, opened)))


def protect(
    texts: str | Sequence[str],
    defence: str | DefenceSpec,
    *,
    encoder: str | EncoderSpec | Encoder = "minilm",
    seed: int | None = None,
    on_progress: OnProgress | None = None,
) -> Vectors:
    """Encode texts with a defence; return the defended vectors, to store instead of plain ones.

    Parameters
    ----------
    texts : str or sequence of n str
    defence : str or DefenceSpec
        As in `gaussian:sigma=0.05` or `text_to_text:eta=60+int8`.
    encoder : str, EncoderSpec or Encoder
    seed : int, optional
        Seed of the noise, to repeat a measurement. Noise with a known seed protects nothing: leave
        it out for vectors that leave your computer.
    on_progress : callable, optional
        Called with a fraction in [0, 1] and a sentence.

    Returns
    -------
    ndarray of float32, shape (n, d)
        d is the defence's width if it changes the width.

    Raises
    ------
    InvalidInputError
        There is no such encoder or defence, or a text cannot be encoded.
    """
    from leakscope.core.defences.adaptive_attack import defended_encoder
    from leakscope.core.protocols import no_progress
    from leakscope.core.text import check_texts

    spec = _read_defence_spec(defence, seed)
    checked = check_texts([texts] if isinstance(texts, str) else texts)
    changed = defended_encoder(_encoder_of(encoder), spec)
    return changed.encode(checked, on_progress or no_progress)


def _open_source(source: Any) -> VectorSource:
    """Open a path or store as a vector source, wrap an array in one, or return a given source."""
    if isinstance(source, str | Path):
        from leakscope.core.audit.sources import open_source

        return open_source(str(source))
    if hasattr(source, "opened"):
        found: VectorSource = source
        return found
    from leakscope.core.audit.sources.arrays import ArraySource

    return ArraySource(source)


def _load_texts(texts: Sequence[str] | Path) -> Sequence[str]:
    """Read texts from a file if a Path is given; return a sequence of texts unchanged."""
    if isinstance(texts, str):  # its letters would be taken for texts
        raise InvalidInputError(
            "texts must be a list of texts or a pathlib.Path, got one string. Give [text], or "
            "Path(…) for a file."
        )
    if isinstance(texts, Path):
        from leakscope.core.corpora.files import read_texts

        return read_texts(texts)
    return texts


def _check_vectors(vectors: Any) -> Vectors:
    """Check vectors and return them as an (n, d) float32 array."""
    import numpy as np

    from leakscope.core.audit.sources.arrays import ArraySource

    return ArraySource(vectors, "vectors").vectors.astype(np.float32)


def _encoder_of(encoder: str | EncoderSpec | Encoder) -> Encoder:
    """Load an encoder by name or spec; return an encoder unchanged."""
    from leakscope.core.encoders import load_encoder
    from leakscope.core.specs import EncoderSpec

    return load_encoder(encoder) if isinstance(encoder, str | EncoderSpec) else encoder


def _attack_name(attack: str | None, encoder: Encoder) -> str:
    """Return the name of the attack; if None, of the strongest that needs no training."""
    from leakscope.core.audit.leakage import strongest_attack

    return attack or strongest_attack(encoder)


def _open_adapted_attack(
    encoder: Encoder, attack: str | None, defence: DefenceSpec | None, on_progress: OnProgress
) -> tuple[InversionAttack, Encoder]:
    """Open an attack and adapt it to the defence; return it with the (defended) encoder."""
    from leakscope.core.attacks.inversion import open_attack
    from leakscope.core.defences.adaptive_attack import adapt_to_defence
    from leakscope.core.specs import AttackSpec

    name = _attack_name(attack, encoder)
    ready = open_attack(name, encoder, on_progress)
    if defence is None:
        return ready, encoder
    lifted = adapt_to_defence(ready, encoder, defence, AttackSpec.of(name), on_progress)
    return lifted, lifted.changed


def _read_defence_spec(defence: str | DefenceSpec | None, seed: int | None) -> DefenceSpec | None:
    """Return the spec of a defence, its noise seeded; None if the defence changes nothing."""
    if defence is None:
        return None
    from leakscope.core.defences.registry import entry_of
    from leakscope.core.defences.spec_parser import read_defence
    from leakscope.core.specs import DefenceSpec

    spec = read_defence(defence, option="defence") if isinstance(defence, str) else defence
    entry = entry_of(spec.name)
    if entry.is_baseline:
        return None
    settings = dict(spec.settings)
    if seed is not None and entry.takes_seed:
        settings.setdefault("seed", seed)
    return DefenceSpec.of(spec.name, settings)
