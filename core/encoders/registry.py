"""The encoders, in the order in which a reader should meet them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.protocols import Encoder
from core.registry import Entry, Part, imported
from core.specs import EncoderSpec

__all__ = [
    "ENCODERS",
    "FITTED_ENCODERS",
    "FITTED_ON_TEXTS",
    "EncoderEntry",
    "FittedEncoderEntry",
    "preparable",
]


@dataclass(frozen=True)
class EncoderEntry(Entry):
    """A way to open encoders: `path` is the function that opens one, of a spec and an argument."""

    argument: str = "ID"
    """What follows the name and a colon; empty where nothing does."""
    label: str = field(default="", kw_only=True)
    """A short name, for figures; the title where it is empty."""

    def load(self, spec: EncoderSpec, argument: str) -> Encoder:
        """Open the encoder of a spec; `argument` is what follows the name and a colon."""
        opened: Encoder = self.kind(spec, argument)
        return opened

    @property
    def listed(self) -> str:
        """The summary as a list of all encoders gives it."""
        return self.summary

    @property
    def cost(self) -> str:
        """What it takes to have one."""
        return f"needs the weights of {self.argument}" if self.argument else "comes with Leakscope"


@dataclass(frozen=True)
class FittedEncoderEntry(EncoderEntry):
    """An encoder that is fitted on a corpus here: `path` is its class."""

    argument: str = "FOLDER"
    fixed: dict[str, Any] = field(default_factory=dict)
    """Settings that make this entry what it is."""
    learns_from: str = "texts"
    """`texts`; `neighbours`, texts in the order of their documents; or `scores`, pairs of texts
    with scores, by `fit_pairs`."""

    def load(self, spec: EncoderSpec, argument: str) -> Encoder:
        """Read the encoder from the folder that `fit` wrote."""
        opened: Encoder = imported("core.encoders.opening:open_fitted")(spec, argument)
        return opened

    @property
    def gives_sparse(self) -> bool:
        """Whether its vectors are sparse, as those of bags of words."""
        return bool(getattr(self.kind, "gives_sparse", False))

    @property
    def is_white_box(self) -> bool:
        """Whether an attacker who holds it sees its token vectors and gradients."""
        return hasattr(self.kind, "embed_token_vectors")

    @property
    def listed(self) -> str:
        """The summary as a list of all encoders gives it."""
        return f"as `fit` wrote it. {self.summary}"

    @property
    def cost(self) -> str:
        """What it takes to have one: what it is fitted on."""
        return {
            "texts": "fitted on texts in any order",
            "neighbours": "fitted on texts in the order of their documents",
            "scores": "fitted on pairs of texts that people scored",
        }[self.learns_from]


_LSA = r"\Phi(x) \propto V_k^\top b(x),\quad B \approx U_k \Sigma_k V_k^\top"
_MEAN = r"\Phi(x) = \frac{1}{|x|} \sum_{w \in x} v_w"
_POOLED = r"\Phi(x) = \frac{1}{|x|} \sum_{i=1}^{|x|} h_i(x)"
_UNIT = r"\Phi(x) = \bar h / \|\bar h\|,\quad \bar h = \frac{1}{|x|} \sum_{i=1}^{|x|} h_i(x)"
_NEXT = (
    r"\max_\Phi\ \log \frac{e^{\Phi(x_a) \cdot \Phi(x_b)}}"
    r"{e^{\Phi(x_a) \cdot \Phi(x_b)} + \sum_{x_n \in X_{neg}} e^{\Phi(x_a) \cdot \Phi(x_n)}}"
)
_AGAINST = (
    r"\min_\Phi \max_A\ \lambda \log P_A\big(s \mid \Phi(x_b)\big)"
    r" - \log P_\Phi(x_b \mid x_a, X_{neg})"
)

ENCODERS: dict[str, EncoderEntry] = {
    "minilm": EncoderEntry(
        "all-MiniLM-L6-v2",
        "Sentence-BERT of 6 layers and 384 dimensions, bundled, works offline",
        "Reimers & Gurevych (2019); Wang et al. (2020)",
        "core.encoders.opening:open_minilm",
        argument="",
        formula=_UNIT,
        label="MiniLM",
        colour="#D55E00",
    ),
    "st": EncoderEntry(
        "Sentence-Transformers",
        "st:ID, any Sentence-Transformers model of the hub or a folder",
        "Reimers & Gurevych (2019)",
        "core.encoders.opening:open_sentence_transformer",
    ),
    "mlm": EncoderEntry(
        "masked language model",
        "mlm:ID, mean pooling over any layer of a Transformers encoder",
        "Devlin et al. (2019)",
        "core.encoders.opening:open_masked_lm",
        formula=_POOLED,
    ),
    "tfidf": FittedEncoderEntry(
        "Bag of words, tf-idf",
        "Counts the words of a text and weighs rare ones more: the text without its order.",
        "Corò (2022), §4.1.2",
        "core.encoders.bag_of_words:TfidfEncoder",
        formula=r"\Phi(x)_w \propto n_w(x)\,\Big(1 + \ln\frac{1 + N}{1 + N_w}\Big)",
        label="tf-idf",
        colour="#0072B2",
    ),
    "hashing": FittedEncoderEntry(
        "Bag of words, hashed",
        "Counts words in cells that a hash picks; no word list is kept.",
        "Corò (2022), §4.1.2",
        "core.encoders.bag_of_words:HashingEncoder",
        formula=r"\Phi(x)_j \propto \sum_{w:\, h(w) = j} \pm\, n_w(x)",
        label="hashing",
        colour="#56B4E9",
    ),
    "lsa_tfidf": FittedEncoderEntry(
        "LSA on tf-idf",
        "The tf-idf bag of words, reduced to its 1,000 strongest directions.",
        "Corò (2022), §4.1.2",
        "core.encoders.lsa:LSAEncoder",
        fixed={"base": "tfidf"},
        formula=_LSA,
        label="LSA tf-idf",
        colour="#009E73",
    ),
    "lsa_hashing": FittedEncoderEntry(
        "LSA on hashed words",
        "The hashed bag of words, reduced to its 1,000 strongest directions.",
        "Corò (2022), §4.1.2",
        "core.encoders.lsa:LSAEncoder",
        fixed={"base": "hashing"},
        formula=_LSA,
        label="LSA hashing",
        colour="#6CC5A8",
    ),
    "doc2vec": FittedEncoderEntry(
        "Doc2Vec",
        "A vector trained to foretell the words of its text (PV-DBOW).",
        "Le & Mikolov (2014); Corò (2022), §4.1.2",
        "core.encoders.doc2vec:Doc2VecEncoder",
        formula=r"\max_{\Phi(x)}\ \sum_{w \in x} \log \sigma\big(v_w \cdot \Phi(x)\big)"
        r" + \sum_{w' \sim P_n} \log \sigma\big(-v_{w'} \cdot \Phi(x)\big)",
        label="Doc2Vec",
        colour="#E69F00",
    ),
    "word2vec": FittedEncoderEntry(
        "Word2Vec, mean",
        "The mean of word vectors trained to foretell the words around.",
        "Mikolov et al. (2013); Song & Raghunathan (2020), §6.1",
        "core.encoders.word_average:Word2VecEncoder",
        formula=_MEAN,
        label="Word2Vec",
        colour="#CC79A7",
    ),
    "fasttext": FittedEncoderEntry(
        "FastText, mean",
        "As Word2Vec, with vectors for parts of words: unknown words have vectors too.",
        "Bojanowski et al. (2017); Song & Raghunathan (2020), §6.1",
        "core.encoders.word_average:FastTextEncoder",
        formula=_MEAN,
        label="FastText",
        colour="#7A5FA8",
    ),
    "glove": FittedEncoderEntry(
        "GloVe, mean",
        "The mean of word vectors trained on how often words stand near each other.",
        "Pennington et al. (2014); Song & Raghunathan (2020), §6.1",
        "core.encoders.glove:GloVeEncoder",
        formula=_MEAN,
        label="GloVe",
        colour="#B5A900",
    ),
    "dual_lstm": FittedEncoderEntry(
        "Dual encoder, LSTM",
        "Trained here to tell a sentence's successor from 800 others; recurrent.",
        "Song & Raghunathan (2020), Eq. 2",
        "core.encoders.dual.encoder:LSTMDualEncoder",
        formula=_NEXT,
        learns_from="neighbours",
        label="dual LSTM",
        colour="#8C6D46",
    ),
    "dual_transformer": FittedEncoderEntry(
        "Dual encoder, Transformer",
        "Trained here to tell a sentence's successor from 800 others; three Transformer layers.",
        "Song & Raghunathan (2020), Eq. 2",
        "core.encoders.dual.encoder:TransformerDualEncoder",
        formula=_NEXT,
        learns_from="neighbours",
        label="dual Transformer",
        colour="#B08D57",
    ),
    "adversarial_lstm": FittedEncoderEntry(
        "Dual encoder, LSTM, adversarial",
        "The recurrent dual encoder, trained so that an adversary cannot read its vectors.",
        "Song & Raghunathan (2020), §7",
        "core.defences.trained.adversarial_dual:AdversarialLSTM",
        formula=_AGAINST,
        learns_from="neighbours",
        label="adversarial LSTM",
        colour="#5F6B2E",
    ),
    "adversarial_transformer": FittedEncoderEntry(
        "Dual encoder, Transformer, adversarial",
        "The same of three Transformer layers.",
        "Song & Raghunathan (2020), §7",
        "core.defences.trained.adversarial_dual:AdversarialTransformer",
        formula=_AGAINST,
        learns_from="neighbours",
        label="adversarial Transformer",
        colour="#8F9E4B",
    ),
    "sbert": FittedEncoderEntry(
        "Sentence-BERT, fine-tuned here",
        "A language model trained so that its cosines follow people's scores of similarity.",
        "Reimers & Gurevych (2019)",
        "core.encoders.sbert.encoder:SentenceBERT",
        formula=r"\min_\Phi\ \sum_{(a, b, s)} \big(\cos(\Phi(a), \Phi(b)) - s / 5\big)^2",
        learns_from="scores",
        label="S-BERT here",
        colour="#A63D00",
    ),
    "defended": EncoderEntry(
        "Encoder behind a trained defence",
        "defended:FOLDER, an encoder with the defence that `defend` trained for it",
        "Song & Raghunathan (2020), §7; Belrose et al. (2023)",
        "core.defences.trained.opening:open_defended",
        argument="FOLDER",
        formula=r"\tilde\Phi(x) = f\big(\Phi(x)\big)",
        label="defended",
    ),
}

FITTED_ENCODERS: Mapping[str, FittedEncoderEntry] = Part(
    ENCODERS, lambda entry: isinstance(entry, FittedEncoderEntry)
)
"""Those that are trained on a corpus here."""

FITTED_ON_TEXTS: Mapping[str, FittedEncoderEntry] = Part(
    FITTED_ENCODERS, lambda entry: entry.learns_from == "texts"
)
"""Those of them that any collection of texts will do for, in any order."""


def preparable() -> tuple[str, ...]:
    """Return the encoders that need nothing but texts: fitted ones first, then bundled ones."""
    return (*FITTED_ON_TEXTS, *(name for name, entry in ENCODERS.items() if not entry.argument))
