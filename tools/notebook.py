"""Build and execute the quickstart: `python -m tools.notebook` writes docs/quickstart.ipynb."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"

_TEXT = """\
# %% markdown
# Leakscope in ten lines

What can an attacker recover from the embeddings of your texts, and what does a defence
change? Four functions answer: `audit`, `invert`, `evaluate` and `protect`. This notebook
runs them on 100 sentences that ship with Leakscope. It needs no network.

`python -m tools.notebook` writes and executes it.

# %% code
from leakscope import audit, evaluate, invert, protect
from leakscope.core.corpora import bundled_sentences
from leakscope.core.encoders import load_encoder

texts = list(bundled_sentences())[5::140][:100]
vectors = load_encoder("minilm").encode(texts)
vectors.shape

# %% markdown
## Audit vectors

Give `audit` the vectors, or where they are: a file such as `vectors.npy`, or a store such
as `chroma:./db#letters`. With the texts, leakage is measured. Without them, it is estimated
where that is possible.

`attack="probe_mlc"` is a fast attack. Leave it out for the strongest one that ships.

# %% code
report = audit(vectors, texts, attack="probe_mlc")
print(report.sentence)
print(report.identification.reason)

# %% markdown
What an audit could not test is listed with it. It is not evidence of safety.

# %% code
for reason in report.not_tested:
    print(reason)

# %% markdown
Names and numbers count most in personal texts. Each share has its interval, and says how
many words could be named at all.

# %% code
for kind in ("names", "numbers"):
    part = report.recovered(kind)
    print(f"{kind}: {part.share.format(0)} % of {part.n_listed}; {part.n_all} in all")

# %% markdown
## Invert a text

`invert` encodes a text, hands only its vector to the attack, and returns the words that the
attack recovers, most confident first.

# %% code
text = "The finance minister resigned after a vote in Berlin."
(found,) = invert(text, attack="probe_mlc")
print(found)

# %% markdown
## Evaluate a defence

`evaluate` scores an attack on texts, beside an attacker who never sees a vector. Where
there is a defence, the attacker knows it.

# %% code
for defence in ("none", "int8", "gaussian:sigma=0.05"):
    result = evaluate(texts, attack="probe_mlc", defence=defence)
    print(f"{defence}: {result.sentence}")

# %% markdown
## Protect texts

`protect` returns vectors behind a defence. The seed is here to repeat the output. Leave it
out for vectors that you release: noise with a known seed protects nothing.

# %% code
protected = protect(texts, "gaussian:sigma=0.05", seed=0)
changed = audit(protected, texts, attack="probe_mlc")
print(changed.sentence)
print(changed.identification.reason)

# %% markdown
This attack did not know that noise was added. The attack in `evaluate` did. Judge a
defence by an attacker who knows it.
"""
"""The cells, each below its kind."""

CELLS = tuple(
    (kind, source.strip())
    for kind, _, source in (cell.partition("\n") for cell in _TEXT.split("# %% ")[1:])
)
"""Kind and source of each cell."""


def built() -> Any:
    """Build the quickstart notebook without outputs.

    Returns
    -------
    nbformat.NotebookNode
        Its cells have fixed ids, so that the same cells make the same file.
    """
    from nbformat import v4

    makers = {"markdown": v4.new_markdown_cell, "code": v4.new_code_cell}
    cells = [makers[kind](source, id=f"cell-{i}") for i, (kind, source) in enumerate(CELLS)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return v4.new_notebook(
        cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}}
    )


def executed(folder: Path) -> Any:
    """Build the quickstart notebook and execute it in a separate process; return it with outputs.

    Parameters
    ----------
    folder : Path
        Where the process starts.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        A cell failed.
    """
    from nbclient import NotebookClient
    from traitlets.config import Config

    notebook = built()
    metadata = dict(notebook.metadata)
    variables = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "PYTHONWARNINGS": "ignore:IProgress not found",  # tqdm's, where no widgets are installed
    }
    with TemporaryDirectory() as sockets:
        # No port is opened.
        channel = Config(KernelManager={"transport": "ipc", "ip": str(Path(sockets, "kernel"))})
        NotebookClient(
            notebook,
            config=channel,
            kernel_name="python3",
            timeout=1_200,
            record_timing=False,
            resources={"metadata": {"path": str(folder)}},
        ).execute(env=variables)
    notebook.metadata = metadata  # without what the machine is
    return notebook


def main() -> None:
    """Execute the quickstart notebook and write it to docs/."""
    import nbformat

    nbformat.write(executed(NOTEBOOK.parent), NOTEBOOK)
    print(f"{NOTEBOOK.relative_to(ROOT)} is written")


if __name__ == "__main__":
    main()
