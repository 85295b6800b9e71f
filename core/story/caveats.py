"""What the figures of a page do not say, in a few sentences: beside every slide of it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CAVEATS", "LOWER"]

LOWER = (
    "What these attackers miss is not thereby safe: another attack, or more texts, may read more."
)
"""What holds of every attack."""
_UNSCORED = "Stop words, and words outside an attack's vocabulary, are not scored."

CAVEATS: Mapping[str, str] = {
    "overview": f"{LOWER} {_UNSCORED} The score counts words in "
    "any order; reconstruction, another attack, recovers whole sentences. One encoder, English.",
    "inversion": f"{LOWER} One sentence is an example, not a measurement. {_UNSCORED} "
    "One encoder, English.",
    "names": "A surname that is an everyday word, too, counts as read. An attacker who is after a "
    "name can train for it, or probe.",
    "projection": "A map draws near things near; it proves no classes.",
    "representations": f"{LOWER} Useful means sorting news by topic: an encoder that does badly "
    "at it may serve well for searching.",
    "attributes": "Which part of it is topic and which is style depends on the texts. A control "
    "with shuffled labels stands beside it.",
    "membership": "A verdict is worth what its false accusations leave of it, at the share of "
    "members that one presumes.",
    "memorisation": "A small model on few texts: how soon a large one keeps a secret was not "
    "measured.",
    "deniability": "A token that changed can be denied only against the odds that η promises; "
    "whoever reads the sentence around it may guess it back. η has no scale of its own: it does "
    "not carry over from one encoder to another.",
    "tradeoff": "A setting that leaks little to these attackers may leak more to a better one. "
    "What a mechanism promises is a ratio of odds, not a score. One encoder, English, short texts.",
    "training": "Adversaries in training are not those who come after it: only fresh ones count.",
    "glossary": "The words as these pages use them. Papers define some of them more narrowly.",
}
"""By page."""
