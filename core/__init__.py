"""Leakscope's engine: what an attacker reads out of text embeddings, and what a defence costs.

Nothing below this package imports the dashboard. In reading order:

- `core.protocols`: what an encoder, an attack and a defence are to each other;
- `core.text`: words, word sets and the vocabulary of an attack;
- `core.corpora`: texts to attack and to train on;
- `core.encoders`: text → vector, with a cache on disk;
- `core.attacks`: vector → words in `core.attacks.inversion`, with training and scoring;
- `core.defences`: text → privatised text or vector, and how deniable its words are;
- `core.metrics`, `core.rank_correlation`: how well it does, with intervals;
- `core.training` and `core.store`: work that stops, resumes and is kept without pickle;
- `core.projection`: maps of many vectors, and how far to trust them;
- `core.studies`: the tables and figures of the documentation;
- `core.__main__`: the command line, `python -m core --help`.

Examples
--------
>>> from core.attacks.inversion import open_attack
>>> from core.encoders import load_encoder
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
