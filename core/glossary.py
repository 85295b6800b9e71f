"""Glossary of the terms that the pages use."""

from __future__ import annotations

GLOSSARY: dict[str, str] = {
    "attacker": "Anyone who obtained vectors and wants to learn what the texts said. The "
    "description of each attack says what else is needed.",
    "attribute": "A fact about a text or its author that the text does not state, such as who "
    "wrote it.",
    "AUC": "How well a score separates two groups, from 0 to 100: 100 is perfect, 50 is no better "
    "than tossing a coin.",
    "auxiliary texts": "Texts that an attacker owns and learns from. They never include the texts "
    "under attack.",
    "canary": "An invented secret, planted in training texts to test whether the model memorises "
    "it.",
    "control": "The same measurement where there is nothing to find, for example with permuted "
    "(randomly exchanged) labels.",
    "cosine": "How similar two vectors are: 1 means the same direction, and 0 means no similarity.",
    "defence": "A change to the text, to its vector or to the training, made so that less can be "
    "recovered.",
    "deniability": "How well an author can say “I did not write this word”, because noise may have "
    "put it there. The higher the odds in the guarantee, the less an author can deny.",
    "differential privacy": "A mathematical guarantee. It limits how much a result can depend on "
    "any one part of the data, such as one text or all texts of one person.",
    "embedding": "A text as a list of numbers, also called its vector. Texts with similar meanings "
    "have similar numbers, which makes search possible.",
    "encoder": "The model that turns a text into its embedding.",
    "epoch": "One pass of the training over all training texts.",
    "epsilon (ε)": "The limit that differential privacy sets: a smaller ε means a stronger "
    "guarantee.",
    "eta (η)": "Sets the noise on words: a smaller η means more noise. The scale differs between "
    "encoders and between mechanisms.",
    "exposure": "How high a model ranks a planted secret among all its possible values, in bits: "
    "each bit more halves its place in the ranking. A secret that was never planted has about 1.4 "
    "bits by chance.",
    "F1": "How well the recovered words match the words of the text, from 0 to 100. Missed words "
    "and wrong answers both lower it.",
    "false-positive rate": "The percentage of non-members that an attack wrongly calls members.",
    "guarantee": "A limit that is proven and holds against every attacker. The limit can be so "
    "weak that it protects nothing.",
    "guessing": "The score of an attacker who never sees the vector. This attacker always gives "
    "the same best answer, such as the most frequent words, or a random one. Only a higher score "
    "shows a leak. The advantage over guessing is how much higher it is.",
    "interval": "The 95 % confidence interval (95 % CI): how much the number could change with "
    "another sample, such as other texts or users. It does not cover other attackers.",
    "inversion": "Recovering the words of a text from its vector.",
    "lambda (λ)": "How much weight a training gives to hiding something; 0 hides nothing.",
    "lower bound": "The amount that our attackers recovered. A better attacker may recover more, "
    "so a low number does not prove safety. For ε, it is the least that an audit shows.",
    "macro-F1": "The mean of the F1 over all classes, so that rare classes count as much as "
    "frequent ones.",
    "membership": "Whether a text, or a user's texts, were among those that a model was trained "
    "on.",
    "noise": "Random change, added on purpose. The result could then also have come from other "
    "words.",
    "precision": "The percentage of the attacker's answers that occur in the text.",
    "recall": "The percentage of the text's words that the attacker recovered.",
    "seed": "The number that fixes all random choices of a run; another seed gives another run.",
    "stop word": "A short, frequent word, such as “the” or “of”. It says little, so it is not "
    "scored unless you ask for it.",
    "token": "A piece of text as an encoder splits it: a word or a part of one.",
    "utility": "How well vectors still do their work: sorting texts, finding them, judging how "
    "similar two are.",
    "vector": "The numbers of an embedding.",
    "vocabulary": "The words that an attack can name. It can never name another word, so other "
    "words were not tested. This does not mean that they are safe.",
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
