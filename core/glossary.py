"""Glossary of the terms that the pages use."""

from __future__ import annotations

GLOSSARY: dict[str, str] = {
    "attacker": "Anyone who has vectors and wants to know what the texts say.",
    "attribute": "A fact about a text or its author that the text does not state, such as who "
    "wrote it.",
    "AUC": "How well a score separates two groups: 100 is perfect, 50 is a coin toss.",
    "auxiliary texts": "Texts that an attacker owns and learns from, never those under attack.",
    "canary": "An invented secret, planted in training texts to test whether a model memorises it.",
    "control": "The same measurement where there is nothing to find, such as shuffled labels.",
    "cosine": "How similar two vectors are: 1 is the same direction, 0 is no similarity.",
    "defence": "A change to the text, its vector or the training, so that less can be recovered.",
    "deniability": "How well an author can deny having written a word, because noise may have put "
    "it there. The higher the odds of telling which word it was, the weaker the denial.",
    "differential privacy": "A mathematical limit on how much a result can depend on one text, or "
    "on all texts of one person.",
    "embedding": "A text as a list of numbers (its vector). Similar texts have similar numbers.",
    "encoder": "The model that turns a text into its embedding.",
    "epoch": "One pass over all training texts.",
    "epsilon (ε)": "The limit that differential privacy sets: smaller is stronger.",
    "eta (η)": "Sets the noise on words: a smaller η means more noise. Its scale differs between "
    "encoders and mechanisms.",
    "exposure": "How high a model ranks a planted secret among all possible values, in bits: each "
    "bit more halves the number of values ranked above it. Chance: about 1.4 bits.",
    "F1": "How well the recovered words match those of the text (0 to 100). Missed words and "
    "wrong answers lower it.",
    "false-positive rate": "The percentage of non-members that an attack wrongly calls members.",
    "guarantee": "A proven limit that holds against every attacker. It can be so weak that it "
    "protects nothing.",
    "guessing": "The score of an attacker who never sees the vector. Only a higher score, an "
    "advantage over guessing, shows a leak.",
    "interval": "The 95 % confidence interval (CI): where the number would probably lie with "
    "other texts or users. It does not cover other attackers.",
    "inversion": "Recovering the words of a text from its vector.",
    "lambda (λ)": "How much weight a training gives to hiding something; 0 hides nothing.",
    "lower bound": "What our attackers recovered. A better attacker may recover more. For ε: the "
    "smallest ε that fits what an audit found.",
    "macro-F1": "How well texts are sorted into classes, from 0 to 100. Each class counts the "
    "same, however rare.",
    "membership": "Whether a model was trained on a text, or on a user's texts.",
    "noise": "Random change on purpose, so that nobody can be sure which word was the original.",
    "precision": "The percentage of the attacker's answers that occur in the text.",
    "recall": "The percentage of the text's words that the attacker recovered.",
    "seed": "The number that fixes the random choices of a run.",
    "stop word": "A short, frequent word, such as “the” or “of”; usually not scored.",
    "token": "A word, or a part of one, as an encoder splits a text.",
    "utility": "How well vectors still sort, find and compare texts.",
    "vector": "The numbers of an embedding.",
    "vocabulary": "The words that an attack can name. Other words were not tested, and may leak "
    "too.",
}
"""Explanations by term, in alphabetical order ignoring case."""


def explain(term: str) -> str:
    """Return the glossary's explanation of a term.

    Raises
    ------
    KeyError
        It is not explained.

    Examples
    --------
    >>> explain("vector")
    'The numbers of an embedding.'
    """
    return GLOSSARY[term]
