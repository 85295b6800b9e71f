"""Write the model cards of the shipped attacks from their records.

`python -m scripts.model_cards` writes README.md beside each trained attack.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.shipped import WEIGHTS
from leakscope.core.results import Score
from leakscope.core.storage.artifacts import read_json

_DATA = (
    "290,004 sentences of English Wikipedia (CC BY-SA), 60,000 of English novels in the public "
    "domain and 40,000 of Tatoeba/Tanaka (CC BY 2.0 FR): those of 3 to 60 words, without "
    "duplicates, 389,624 in all. No news, and nothing licensed for research only."
)


def model_card(folder: Path) -> str:
    """Write the model card of the attack in a folder, as Markdown text."""
    meta = read_json(folder / "model.json")
    name, record = meta["attack"], meta["training"]
    entry = INVERSION_ATTACKS[name]
    lines = [
        f"# {name}: {entry.title}",
        "",
        f"{entry.summary} Source: {entry.reference}. Access: {entry.access.value}.",
        "",
        f"- **Encoder**: {meta['state']['encoder_name']}, fingerprint "
        f"`{meta['state']['encoder_fingerprint'][:16]}`; other encoders are refused.",
        *_defence_line(record),
        f"- **Data**: {_DATA} Used here: {record['n_texts']:,} sentences.",
        f"- **Seed**: {record['seed']}. **Seconds**: {record['seconds']:,.0f} on "
        f"{_format_hardware(record['hardware'])}, vectors computed before in bfloat16.",
        f"- **Settings**: {_format_settings(meta['settings'])}",
        f"- **Held-out scores**: {_scores(record.get('held_out'), name)}",
        *_confidence_line(record),
        "- **Rebuild**: see [assets/weights/README.md](../../README.md).",
        "- **Limits**: English; words outside the vocabulary cannot be recovered. A research "
        "tool to measure leakage; what it misses is not thereby safe.",
        "",
    ]
    return "\n".join(lines)


def _confidence_line(record: dict[str, Any]) -> list[str]:
    """Return the card's line on calibrated confidence in a list; empty if it has none."""
    if (learned := record.get("confidence")) is None:
        return []
    return [
        f"- **How sure it is**: learned from {learned['n_texts']:,} held-out sentences, each "
        f"with up to {learned['n_queries']:,} queries, of 4 to 32 words; of other lengths, and "
        "of other languages, nobody looked."
    ]


def _defence_line(record: dict[str, Any]) -> list[str]:
    """Return the card's line on the defence trained against in a list; empty if none."""
    if "defence" not in record:
        return []
    return [
        f"- **Defence**: trained behind `{record['defence']}`; vectors that are not behind the "
        "same are refused."
    ]


def _format_hardware(hardware: dict[str, Any]) -> str:
    """Format the training hardware in words."""
    return f"{hardware['n_cpus']} {hardware['chip']} cores ({hardware['device']})"


def _format_settings(settings: dict[str, Any]) -> str:
    """Format an attack's settings as a list of `name=value`."""
    return ", ".join(f"`{key}={value}`" for key, value in sorted(settings.items()))


def _scores(held_out: dict[str, Any] | None, name: str = "") -> str:
    """Format the held-out scores in words; name the table to see if there are none."""
    if held_out is None:
        table = "reconstruct-wikipedia" if name == "reconstruct" else "inversion-bbc"
        return f"none in training; see results/{table}.md."
    f1 = Score.of_record(held_out, "token_set_f1", chance="prior_f1")
    documents = f" of {held_out['n_documents']:,} documents" if "n_documents" in held_out else ""
    return (
        f"F1 {f1.format()}, precision {held_out['precision']:.1f}, recall {held_out['recall']:.1f} "
        f"on n = {f1.n:,} sentences{documents} of the same sources (prior only: {f1.chance:.1f})"
        f"{_subset_recalls(held_out)}. On news: results/inversion-bbc.md."
    )


def _subset_recalls(held_out: dict[str, Any]) -> str:
    """Format the recall of names, numbers and rare words in words; empty if not recorded."""
    if "rare_recall" not in held_out:
        return ""
    recalls = [
        f"{value:.0f} % of {what} (n {held_out[n]:,})"
        for what, n, value in (
            ("names and numbers", "n_names", held_out["name_recall"]),
            ("numbers", "n_numbers", held_out["number_recall"]),
            ("rare words", "n_rare", held_out["rare_recall"]),
        )
        if value is not None
    ]
    return (
        f", F1 of every word {Score.of_record(held_out, 'unrestricted_f1').format()}; read: "
        f"{', '.join(recalls)}. {held_out['n_near_duplicates']:,} further ones nearly repeat a "
        "text that was trained on, and are left out"
    )


def main() -> None:
    """Write the README.md of every shipped attack: its model card."""
    argparse.ArgumentParser(prog="python -m scripts.model_cards", description=__doc__).parse_args()
    for meta in sorted(WEIGHTS.glob("*/*/model.json")):
        (meta.parent / "README.md").write_text(model_card(meta.parent), encoding="utf-8")


if __name__ == "__main__":
    main()
