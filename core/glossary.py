"""Glossary of the terms that the pages use."""

from __future__ import annotations

GLOSSARY: dict[str, str] = {
    "attacker": "Anyone who obtained vectors and wants to learn what the texts said.",
    "attribute": "A fact about a text or its author that the text does not state, such as who "
    "wrote it.",
    "AUC": "How well a score separates two groups: 100 is perfect, 50 is no better than tossing a "
    "coin.",
    "auxiliary texts": "Texts that an attacker owns and learns from, never those under attack.",
    "canary": "An invented secret, planted in training texts to test whether the model memorises "
    "it.",
    "control": "The same measurement where there is nothing to find, for example with randomly "
    "exchanged (permuted) labels.",
    "cosine": "How similar two vectors are: 1 is the same direction, 0 is no similarity.",
    "defence": "A change to the text, to its vector or to the training, made so that less can be "
    "recovered.",
    "deniability": "How well an author can say “I did not write this word”, because noise may have "
    "put it there. The higher the odds in the guarantee, the less the denial is worth.",
    "differential privacy": "A mathematical guarantee: it limits how much a result can depend on "
    "one text, or on all texts of one person.",
    "embedding": "A text as a list of numbers, also called its vector. Similar texts have similar "
    "numbers, which makes search possible.",
    "encoder": "The model that turns a text into its embedding.",
    "epoch": "One pass of the training over all training texts.",
    "epsilon (ε)": "The limit that differential privacy sets: a smaller ε means a stronger "
    "guarantee.",
    "eta (η)": "Sets the noise on words: a smaller η means more noise. Its scale differs between "
    "encoders and mechanisms.",
    "exposure": "How high a model ranks a planted secret among all its possible values, in bits: "
    "one bit more halves its place in the ranking. By chance, it is about 1.4 bits.",
    "F1": "How well the recovered words match the words of the text, from 0 to 100. Missed words "
    "and wrong answers both lower it.",
    "false-positive rate": "The percentage of non-members that an attack wrongly calls members.",
    "guarantee": "A proven limit that holds against every attacker. It can be so weak that it "
    "protects nothing.",
    "guessing": "The score of an attacker who never sees the vector and answers, for example, the "
    "most frequent words. Only a higher score shows a leak. The advantage over guessing is how "
    "much higher it is.",
    "interval": "The 95 % confidence interval (95 % CI): how much the number could change with "
    "other texts or users. It does not cover other attackers.",
    "inversion": "Recovering the words of a text from its vector.",
    "lambda (λ)": "How much weight a training gives to hiding something; 0 hides nothing.",
    "lower bound": "What our attackers recovered. A better attacker may recover more, so a low "
    "number does not prove safety. For ε: the least that an audit shows.",
    "macro-F1": "The mean of the F1 over all classes: rare ones count as much as frequent ones.",
    "membership": "Whether a model was trained on a text, or on a user's texts.",
    "noise": "Random change, added on purpose, so that other words could have given the same "
    "result.",
    "precision": "The percentage of the attacker's answers that occur in the text.",
    "recall": "The percentage of the text's words that the attacker recovered.",
    "seed": "The number that fixes the random choices of a run.",
    "stop word": "A short, frequent word, such as “the” or “of”. It is not scored unless you "
    "ask for it.",
    "token": "A piece of text as an encoder splits it: a word or a part of one.",
    "utility": "How well vectors still do their work: sorting texts, finding them, judging how "
    "similar two are.",
    "vector": "The numbers of an embedding.",
    "vocabulary": "The words that an attack can name. Other words were not tested, which does not "
    "mean that they are safe.",
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
