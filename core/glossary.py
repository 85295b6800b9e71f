"""What the words of the pages mean: one explanation each, wherever they stand."""

from __future__ import annotations

__all__ = ["GLOSSARY", "explained"]

GLOSSARY: dict[str, str] = {
    "attacker": "Whoever got hold of vectors and wants to know what they are of. What each of them "
    "needed besides stands on its card.",
    "attribute": "A fact about a text or its author that the text does not name, such as who "
    "wrote it.",
    "AUC": "How well a score tells two groups apart: 100 is always, 50 is a toss of a coin.",
    "auxiliary texts": "Texts that an attacker has beforehand and learns from. They are never "
    "those under attack.",
    "canary": "A secret planted in training texts on purpose, to see whether a model keeps it.",
    "defence": "What changes a text, its vector or the training, so that less can be read.",
    "deniability": "How well one can deny that a word stood in a text, once noise may have put it "
    "there.",
    "differential privacy": "A promise in numbers: how much the outcome may hang on what any one "
    "person gave.",
    "embedding": "A text as a list of numbers, also called its vector. Texts of like meaning have "
    "like numbers, which is what search goes by.",
    "encoder": "The model that turns a text into its embedding.",
    "epsilon (ε)": "The strength of differential privacy: a small ε promises much, a large one "
    "little.",
    "eta (η)": "The strength of noise on words: a small η is much noise, a large one little. Each "
    "encoder has a scale of its own.",
    "exposure": "In bits, how far a planted secret stands out among others like it: 0 is not at "
    "all.",
    "F1": "How well the words that were read match those of the text, from 0 to 100. It counts "
    "what was missed and what was wrongly said alike.",
    "guessing": "What an attacker reaches who never looks at the vector and always answers the "
    "most frequent words. Only what lies above it was given away.",
    "interval": "Where the number would lie in 95 of 100 such measurements on other texts: "
    "how far to trust it.",
    "inversion": "Reading from a vector what words its text holds.",
    "lower bound": "What these attackers read. Another may read more, so a low number is no proof "
    "of safety.",
    "membership": "Whether a text was among those that a model was trained on.",
    "noise": "Chance that is added on purpose, so that what comes out might have come of other "
    "words.",
    "precision": "Of the words that the attacker answered, the per cent that stand in the text.",
    "promise": "What is proven of a defence, whoever attacks. What is only measured holds for the "
    "attackers that were tried.",
    "recall": "Of the words in the text, the per cent that the attacker answered.",
    "stop word": "A small frequent word such as *the* or *of*. It says little and is not scored "
    "unless asked for.",
    "token": "A piece of text as an encoder cuts it: a word, or a part of one.",
    "usefulness": "How well vectors still do what they are for: sorting texts, finding them again, "
    "judging how alike two are.",
    "vector": "The numbers of an embedding.",
    "vocabulary": "The words that an attacker can answer. What stands outside it is not read, and "
    "not thereby safe.",
}
"""Terms in the order of the alphabet, whatever their capitals."""


def explained(term: str) -> str:
    """Return what a term means.

    Raises
    ------
    KeyError
        It is not explained.

    Examples
    --------
    >>> explained("vector")
    'The numbers of an embedding.'
    """
    return GLOSSARY[term]
