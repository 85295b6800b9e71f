"""Settings shared by several attacks."""

from __future__ import annotations

from functools import partial

from leakscope.core.specs import setting

BATCH_SIZE = partial(setting, help="Texts a step", low=1)
LEARNING_RATE = partial(setting, help="Of Adam", low=1e-6, high=1.0)
EPOCHS = partial(setting, help="At most", low=1)
PATIENCE = partial(setting, help="Epochs without a better F1 before training stops", low=1)
DECAY = partial(setting, help="Lower the learning rate linearly to 5 %")
VALIDATION_SHARE = partial(
    setting, default=0.1, help="Share of texts for validation", low=0.001, high=0.5
)
VOCABULARY_SIZE = partial(setting, default=20_000, help="Vocabulary size", low=10)
KEEP_STOP_WORDS = partial(setting, default=False, help="Count stop words as words to find (SR20)")
SIZE_FACTOR = partial(
    setting,
    default=1.25,
    help="Factor on the predicted number of words",
    low=0.1,
    high=10.0,
    at="answer",
)
SUBSTITUTIONS = partial(
    setting, help="Copies of each training text with substituted words", low=0, high=10
)
SEED = partial(setting, default=0, help="Random seed of split, initialisation and order", low=0)
DEVICE = partial(setting, default="auto", help="Device for training: auto, cpu, cuda or mps")
