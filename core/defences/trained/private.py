"""Differentially private training of a text classifier.

It does not hide anything in a vector. An attacker with the classifier can hardly infer whether a
text was in its training set: the odds change by a factor of at most e^ε, except with probability δ.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import (
    ArtifactError,
    CoreError,
    DivergedError,
    EncoderMismatchError,
    InvalidInputError,
    NotFittedError,
)
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.registry import Entry, find, make
from leakscope.core.specs import settings_of, validate_settings
from leakscope.core.storage.artifacts import (
    META,
    UNFIT,
    load_artifact,
    read_record,
    save_artifact,
    storage_errors,
    write_json,
)
from leakscope.core.storage.atomic_files import remove_leftovers
from leakscope.core.text import check_texts
from leakscope.core.training.accounting import Guarantee, Privacy
from leakscope.core.training.private_heads import HeadSettings, TrainedHead, check_data, fit_head
from leakscope.core.vectors import is_sparse


@dataclass
class PrivateTraining(HeadSettings):
    """A classifier of texts, trained by DP-SGD on the vectors of a frozen encoder.

    Implements Corò (2022), Eq. 3.5 (Abadi et al. 2016); see `leakscope.core.training.private`.
    Differs from the paper: the encoder is not trained, so that noise is added to few weights.

    Attributes
    ----------
    seed : int or None
        Of batches and noise; one that nobody knows is drawn by default, and is not stored: who
        knew it could take the noise off again.
    privacy_ : Privacy
        After `fit`: what the training spent.
    """

    seed: int | None = None
    head_: TrainedHead = field(init=False, repr=False, compare=False)
    classes_: tuple[str, ...] = field(init=False, repr=False, compare=False)
    encoder_: str = field(init=False, repr=False, compare=False)

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        labels: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Encode texts and train the classifier by DP-SGD; the set of labels is not protected.

        With `checkpoint_dir`, an interrupted run resumes from its last checkpoint, with its
        accountant. The folder holds the seed and the state of the noise until the training ends,
        and nothing of them afterwards: fitting again there trains another model, which costs ε
        again.

        Raises
        ------
        InvalidInputError
            Settings or texts that cannot be used, or an ε of 0.
        DivergedError
            The training diverged; nothing of it is stored, not even the seed.
        MissingDependencyError
            opacus is not installed.
        ArtifactError
            The folder holds a checkpoint of another run, or one whose seed is gone.
        """
        validate_settings(self)
        Guarantee(epsilon=self.epsilon, delta=self.delta, n_expected=len(texts)).check()
        if len(texts) != len(labels):
            raise InvalidInputError(
                f"{len(texts)} texts have {len(labels)} classes: give one each."
            )
        if vectors is None:
            vectors = encoder.encode(check_texts(texts), on_progress)
        if is_sparse(vectors):
            raise InvalidInputError("Private training needs dense vectors. Choose another encoder.")
        classes = tuple(sorted(set(labels)))
        if len(classes) < 2:
            raise InvalidInputError(
                f"A classifier needs at least two classes, but these texts have {len(classes)}. "
                "Give texts of other classes as well."
            )
        place = {label: i for i, label in enumerate(classes)}
        ids = np.array([place[label] for label in labels], np.int64)
        check_data(vectors, ids, len(classes))  # before a seed is drawn and kept
        folder = None if checkpoint_dir is None else Path(checkpoint_dir)
        with _delete_secrets_at_end(folder):
            head = fit_head(
                vectors,
                ids,
                len(classes),
                self,
                self._choose_seed(folder),
                checkpoint_dir=folder and folder / _RUN,
                on_progress=on_progress,
            )
        self.head_, self.classes_, self.encoder_ = head, classes, encoder.fingerprint
        return self

    @property
    def privacy_(self) -> Privacy:
        """The privacy budget that the training spent."""
        self._check_fitted()
        assert self.head_.privacy is not None
        return self.head_.privacy

    def answer(
        self, encoder: Encoder, texts: Sequence[str], on_progress: OnProgress = no_progress
    ) -> NDArray[np.float32]:
        """Encode texts and predict their (n, n_classes) class probabilities.

        Raises
        ------
        NotFittedError, EncoderMismatchError
            It was not fitted, or with another encoder.
        """
        self._check_fitted()
        if (encoder.fingerprint, encoder.dimension) != (self.encoder_, self.head_.dimension):
            raise EncoderMismatchError(
                f"The classifier was trained on vectors of another encoder than {encoder.name}. "
                "Choose that encoder, or train again."
            )
        return self.head_.probabilities(encoder.encode(check_texts(texts), on_progress))

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the weights and the privacy spent, but never the seed."""
        spent = asdict(self.privacy_)
        meta = {"classes": list(self.classes_), "encoder": self.encoder_, "privacy": spent}
        return dict(self.head_.weights), meta

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the classifier's weights and privacy cost from what `state` returned."""
        spent = Privacy.from_dict(meta["privacy"])
        self.head_ = TrainedHead(dict(arrays), spent).check(len(meta["classes"]))
        self.classes_, self.encoder_ = tuple(map(str, meta["classes"])), str(meta["encoder"])
        return self

    def _check_fitted(self) -> None:
        """Raise NotFittedError if neither `fit` nor `load_state` has been called."""
        if not hasattr(self, "head_"):
            raise NotFittedError("The classifier was not trained: call fit, or load one.")

    def _choose_seed(self, folder: Path | None) -> int:
        """Return the set seed or a secret one; a resumed run reuses its stored secret seed."""
        if self.seed is not None:
            if self.seed < 0:
                raise InvalidInputError(f"seed must be 0 or more, got {self.seed}.")
            return self.seed
        drawn = secrets.randbits(_SEED_BITS)
        if folder is None:
            return drawn
        if (folder / _SEED).exists():
            return int(read_record(folder / _SEED, seed=int)["seed"])
        if (folder / _RUN / META).exists():
            raise ArtifactError(
                f"{folder} contains a training run without its seed, which cannot be resumed: it "
                f"has finished, or {_SEED} was removed. Remove {folder / _RUN}, which can reveal "
                "the noise, or choose another folder."
            )
        write_json(folder / _SEED, {"seed": drawn})
        return drawn


_SEED, _RUN = "seed.json", "run"
_SEED_BITS = 256


@contextmanager
def _delete_secrets_at_end(folder: Path | None) -> Iterator[None]:
    """Context manager: delete the seed and checkpoint once training has finished or diverged.

    A training that resumes needs both. The checkpoint is deleted first: a kill in between leaves
    only a seed, from which the same training starts again.
    """
    is_over = True
    try:
        yield
    except BaseException as error:
        is_over = isinstance(error, DivergedError)
        raise
    finally:
        if is_over and folder is not None:
            with storage_errors(folder):
                _remove_run(folder / _RUN)
                (folder / _SEED).unlink(missing_ok=True)


def _remove_run(run: Path) -> None:
    """Delete a checkpoint's files in folder `run`; other files in it are kept."""
    if run.is_dir():
        remove_leftovers(run)
        for path in (run / META, *run.glob("model-*.safetensors")):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            run.rmdir()


@dataclass(frozen=True)
class PrivateTrainingEntry(Entry):
    """Registry entry of a way to train privately."""

    guarantee: str
    """The guarantee in words."""
    takes: str
    """The cost in words; time and lost utility are measured."""

    @property
    def cost(self) -> str:
        """What the training requires, as a phrase."""
        return self.takes


_GUARANTEE = (
    "(ε, δ)-differential privacy of each text: training on it changes the odds of any outcome by "
    "a factor of at most e^ε, except with probability δ"
)
_FORMULA = (
    r"\tilde g = \tfrac{1}{B}\big(\sum_i g_i \min(1, C / \|g_i\|) + \mathcal N(0, \sigma^2 C^2 I)"
    r"\big)"
)

PRIVATE_TRAININGS: Mapping[str, PrivateTrainingEntry] = {
    "head": PrivateTrainingEntry(
        "Classifier by DP-SGD",
        "A classifier on the vectors of a frozen encoder. Training clips each text's gradient and "
        "adds noise to the sum. `train-private` trains one.",
        "Abadi et al. (2016); Corò (2022), Eq. 3.5",
        f"{__name__}:PrivateTraining",
        guarantee=_GUARANTEE,
        takes="seconds per model, and some accuracy; with more texts, it costs less accuracy",
        formula=_FORMULA,
        colour="#0072B2",
        symbol="circle",
    ),
    "language_model": PrivateTrainingEntry(
        "Language model by DP-SGD",
        "A small Transformer that continues texts, trained in the same way by `study "
        "private-training`.",
        "Abadi et al. (2016); Corò (2022), §3.5.1",
        "leakscope.core.attacks.membership.memorisation.private:train_model",
        guarantee=_GUARANTEE,
        takes="minutes per model, and some bits per token; a text that occurs m times has a weaker "
        "guarantee, with more than m times the ε",
        formula=_FORMULA,
        colour="#E69F00",
        symbol="square",
    ),
}


def make_training(name: str, settings: Mapping[str, Any]) -> PrivateTraining:
    """Build an untrained private classifier from its registry name and settings.

    Raises
    ------
    InvalidInputError
        No such training or setting, or a value outside its range.
    """
    entry = find(PRIVATE_TRAININGS, name, "training")
    if not isinstance(entry.kind, type):
        raise InvalidInputError(f"{name} is trained by `study private-training`.")
    made: PrivateTraining = make(entry, name, settings, also=("seed",))
    return made


def save_training(
    made: PrivateTraining, folder: Path, *, training: Mapping[str, Any] | None = None
) -> Path:
    """Write a trained private classifier to a folder: weights, settings, record, never the seed.

    Raises
    ------
    NotFittedError
        It was not fitted.
    StorageError
        The disk is full or the folder cannot be written.
    """
    arrays, state = made.state()
    settings = {key: getattr(made, key) for key in settings_of(type(made))}
    head = {"kind": _KIND, "settings": settings, "training": dict(training or {})}
    return save_artifact(folder, arrays, {**head, "state": state})


def load_training(folder: Path | str) -> PrivateTraining:
    """Load a private classifier from the folder that `save_training` wrote.

    Raises
    ------
    ArtifactError
        The files are missing, damaged or do not describe such a classifier.
    """
    arrays, meta = load_artifact(Path(folder))
    try:
        if meta["kind"] != _KIND:
            raise InvalidInputError(f"its kind is {meta['kind']!r}")
        return make_training("head", meta["settings"]).load_state(arrays, meta["state"])
    except (*UNFIT, CoreError) as error:
        raise ArtifactError(f"{folder} does not contain a private classifier: {error}") from error


_KIND = "private training"
