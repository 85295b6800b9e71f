"""Leakscope's engine: what an attacker reads out of text embeddings, and what a defence costs.

Nothing below this package imports the dashboard. In reading order:

- `leakscope.core.protocols`: what an encoder, an attack and a defence are to each other;
- `leakscope.core.text`: words, word sets and the vocabulary of an attack;
- `leakscope.core.corpora`: texts to attack and to train on;
- `leakscope.core.encoders`: text → vector, with a cache on disk;
- `leakscope.core.attacks`: vector → words in `leakscope.core.attacks.inversion`, with training and
  scoring;
- `leakscope.core.defences`: text → privatised text or vector, and how deniable its words are;
- `leakscope.core.metrics`, `leakscope.core.rank_correlation`: how well it does, with intervals;
- `leakscope.core.training` and `leakscope.core.storage.artifacts`: work that stops, resumes and is
  kept without pickle;
- `leakscope.core.projection`: maps of many vectors, and how far to trust them;
- `leakscope.core.studies`: the tables and figures of the documentation;
- `leakscope.core.cli`: the command line, `leakscope --help`.

Examples
--------
>>> from leakscope.core.attacks.inversion import open_attack
>>> from leakscope.core.encoders import load_encoder
>>> encoder = load_encoder("minilm")
>>> attack = open_attack("probe_mlc", encoder)
>>> vectors = encoder.encode(["The finance minister resigned after a vote in Berlin."])
>>> "minister" in attack.invert(encoder, vectors)[0].word_set
True
"""

import os

# By default threads of one step wait for each other by spinning. With other work on the processor
# they take its time from those they wait for: decision 23.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Libraries tell of their use unless told not to. ONNX Runtime begins when it is imported, and keeps
# what it could not send in the user's cache folder.
for _name in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
    os.environ[_name] = "1"

__version__ = "0.1.0"
