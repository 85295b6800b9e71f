"""Model cards of the shipped attacks, written from what their files record.

`python -m core.attacks.inversion.model_cards` writes README.md beside each trained attack.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.attacks.inversion.shipped import WEIGHTS
from core.results import Score
from core.store import read_json

__all__ = ["main", "model_card"]

_DATA = (
    "290,004 sentences of English Wikipedia (CC BY-SA), 60,000 of English novels in the public "
    "domain and 40,000 of Tatoeba/Tanaka (CC BY 2.0 FR): those of 3 to 60 words, without "
    "duplicates, 389,624 in all. No news, and nothing licensed for research only."
)


def model_card(folder: Path) -> str:
    """Return the card of the attack in `folder` as Markdown."""
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
        *_behind(record),
        f"- **Data**: {_DATA} Used here: {record['n_texts']:,} sentences.",
        f"- **Seed**: {record['seed']}. **Seconds**: {record['seconds']:,.0f} on "
        f"{_hardware(record['hardware'])}, vectors computed before in bfloat16.",
        f"- **Settings**: {_settings(meta['settings'])}",
        f"- **Held-out scores**: {_scores(record.get('held_out'), name)}",
        *_sure(record),
        "- **Rebuild**: see [assets/weights/README.md](../../README.md).",
        "- **Limits**: English; words outside the vocabulary cannot be recovered. A research "
        "tool to measure leakage; what it misses is not thereby safe.",
        "",
    ]
    return "\n".join(lines)


def _sure(record: dict[str, Any]) -> list[str]:
    if (learned := record.get("confidence")) is None:
        return []
    return [f"- **How sure it is**: learned from {learned['n_texts']:,} held-out sentences, each "
            f"with up to {learned['n_queries']:,} queries, of 4 to 32 words; of other lengths, and "
            "of other languages, nobody looked."]  # fmt: skip


def _behind(record: dict[str, Any]) -> list[str]:
    if "defence" not in record:
        return []
    return [f"- **Defence**: trained behind `{record['defence']}`; vectors that are not behind the "
            "same are refused."]  # fmt: skip


def _hardware(hardware: dict[str, Any]) -> str:
    return f"{hardware['n_cpus']} {hardware['chip']} cores ({hardware['device']})"


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"`{key}={value}`" for key, value in sorted(settings.items()))


def _scores(held_out: dict[str, Any] | None, name: str = "") -> str:
    if held_out is None:
        table = "reconstruct-wikipedia" if name == "reconstruct" else "inversion-bbc"
        return f"none in training; see docs/results/{table}.md."
    f1 = Score.of_record(held_out, "token_set_f1", chance="prior_f1")
    documents = f" of {held_out['n_documents']:,} documents" if "n_documents" in held_out else ""
    return (
        f"F1 {f1.said()}, precision {held_out['precision']:.1f}, recall "
        f"{held_out['recall']:.1f} on n = {f1.n:,} "
        f"sentences{documents} of the same sources (prior only: {f1.chance:.1f})"
        f"{_apart(held_out)}. On news: docs/results/inversion-bbc.md."
    )


def _apart(held_out: dict[str, Any]) -> str:
    """Return what is read of numbers and rare words, and what was left out, where it is known."""
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
        f", F1 of every word {Score.of_record(held_out, 'unrestricted_f1').said()}; read: "
        f"{', '.join(recalls)}. {held_out['n_near_duplicates']:,} further ones nearly repeat a "
        "text that was trained on, and are left out"
    )


def main() -> None:
    """Write the card of every shipped attack."""
    for meta in sorted(WEIGHTS.glob("*/*/model.json")):
        (meta.parent / "README.md").write_text(model_card(meta.parent), encoding="utf-8")


if __name__ == "__main__":
    main()
