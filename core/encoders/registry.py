"""The registry of encoders, in the order in which lists show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leakscope.core.protocols import Encoder
from leakscope.core.registry import Entry, FilteredRegistry, import_object
from leakscope.core.specs import EncoderSpec


@dataclass(frozen=True)
class EncoderEntry(Entry):
    """A registered kind of encoder; `path` is the function that loads one."""

    argument: str = "ID"
    """Placeholder for the part after the name and a colon; empty if there is none."""
    label: str = field(default="", kw_only=True)
    """A short name for figures; empty for the title."""

    def load(self, spec: EncoderSpec, argument: str) -> Encoder:
        """Load the encoder that a spec names; `argument` is what its name has after the colon."""
        opened: Encoder = self.kind(spec, argument)
        return opened

    @property
    def listed(self) -> str:
        """The summary for the list of all encoders."""
        return self.summary

    @property
    def cost(self) -> str:
        """What the encoder requires: nothing, or the weights named by its argument."""
        return f"needs the weights of {self.argument}" if self.argument else "bundled"


@dataclass(frozen=True)
class FittedEncoderEntry(EncoderEntry):
    """A registered encoder that is fitted on a corpus; `path` is its class."""

    argument: str = "FOLDER"
    fixed: dict[str, Any] = field(default_factory=dict)
    """Settings that are fixed for this entry."""
    learns_from: str = "texts"
    """`texts`; `neighbours`, texts in the order of their documents; or `scores`, pairs of texts
    with scores, by `fit_pairs`."""

    def load(self, spec: EncoderSpec, argument: str) -> Encoder:
        """Load the fitted encoder from `argument`, the folder that `fit` wrote."""
        opened: Encoder = import_object("leakscope.core.encoders.loaders:open_fitted")(
            spec, argument
        )
        return opened

    @property
    def gives_sparse(self) -> bool:
        """Whether the encoder's vectors are sparse matrices, as for bags of words."""
        return bool(getattr(self.kind, "gives_sparse", False))

    @property
    def is_white_box(self) -> bool:
        """Whether an attacker who has the encoder can use its token vectors and gradients."""
        return hasattr(self.kind, "embed_token_vectors")

    @property
    def listed(self) -> str:
        """The summary for the list of all encoders."""
        return f"a folder written by `fit`. {self.summary}"

    @property
    def cost(self) -> str:
        """What data the encoder is fitted on."""
        return {
            "texts": "fitted on texts in any order",
            "neighbours": "fitted on texts in document order",
            "scores": "fitted on pairs of texts with human scores",
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
        "Sentence-BERT with 6 layers and 384 dimensions; bundled, works offline",
        "Reimers & Gurevych (2019); Wang et al. (2020)",
        "leakscope.core.encoders.loaders:open_minilm",
        argument="",
        formula=_UNIT,
        label="MiniLM",
        colour="#D55E00",
    ),
    "st": EncoderEntry(
        "Sentence-Transformers",
        "st:ID, any Sentence-Transformers model from the hub or a folder",
        "Reimers & Gurevych (2019)",
        "leakscope.core.encoders.loaders:open_sentence_transformer",
    ),
    "mlm": EncoderEntry(
        "masked language model",
        "mlm:ID, mean pooling over any layer of a Transformers encoder",
        "Devlin et al. (2019)",
        "leakscope.core.encoders.loaders:open_masked_lm",
        formula=_POOLED,
    ),
    "tfidf": FittedEncoderEntry(
        "Bag of words, tf-idf",
        "Counts the words of a text, without their order, and gives rare words more weight.",
        "Corò (2022), §4.1.2",
        "leakscope.core.encoders.bag_of_words:TfidfEncoder",
        formula=r"\Phi(x)_w \propto n_w(x)\,\Big(1 + \ln\frac{1 + N}{1 + N_w}\Big)",
        label="tf-idf",
        colour="#0072B2",
    ),
    "hashing": FittedEncoderEntry(
        "Bag of words, hashed",
        "Counts words in cells chosen by a hash; it stores no word list.",
        "Corò (2022), §4.1.2",
        "leakscope.core.encoders.bag_of_words:HashingEncoder",
        formula=r"\Phi(x)_j \propto \sum_{w:\, h(w) = j} \pm\, n_w(x)",
        label="hashing",
        colour="#56B4E9",
    ),
    "lsa_tfidf": FittedEncoderEntry(
        "LSA on tf-idf",
        "The tf-idf bag of words, reduced to its 1,000 strongest directions.",
        "Corò (2022), §4.1.2",
        "leakscope.core.encoders.lsa:LSAEncoder",
        fixed={"base": "tfidf"},
        formula=_LSA,
        label="LSA tf-idf",
        colour="#009E73",
    ),
    "lsa_hashing": FittedEncoderEntry(
        "LSA on hashed words",
        "The hashed bag of words, reduced to its 1,000 strongest directions.",
        "Corò (2022), §4.1.2",
        "leakscope.core.encoders.lsa:LSAEncoder",
        fixed={"base": "hashing"},
        formula=_LSA,
        label="LSA hashing",
        colour="#6CC5A8",
    ),
    "doc2vec": FittedEncoderEntry(
        "Doc2Vec",
        "A vector trained to predict the words of its text (PV-DBOW).",
        "Le & Mikolov (2014); Corò (2022), §4.1.2",
        "leakscope.core.encoders.doc2vec:Doc2VecEncoder",
        formula=r"\max_{\Phi(x)}\ \sum_{w \in x} \log \sigma\big(v_w \cdot \Phi(x)\big)"
        r" + \sum_{w' \sim P_n} \log \sigma\big(-v_{w'} \cdot \Phi(x)\big)",
        label="Doc2Vec",
        colour="#E69F00",
    ),
    "word2vec": FittedEncoderEntry(
        "Word2Vec, mean",
        "The mean of word vectors, which are trained to predict context words.",
        "Mikolov et al. (2013); Song & Raghunathan (2020), §6.1",
        "leakscope.core.encoders.word_average:Word2VecEncoder",
        formula=_MEAN,
        label="Word2Vec",
        colour="#CC79A7",
    ),
    "fasttext": FittedEncoderEntry(
        "FastText, mean",
        "Like Word2Vec, with vectors for parts of words, so unknown words have vectors too.",
        "Bojanowski et al. (2017); Song & Raghunathan (2020), §6.1",
        "leakscope.core.encoders.word_average:FastTextEncoder",
        formula=_MEAN,
        label="FastText",
        colour="#7A5FA8",
    ),
    "glove": FittedEncoderEntry(
        "GloVe, mean",
        "The mean of word vectors, which are trained on how often words occur together.",
        "Pennington et al. (2014); Song & Raghunathan (2020), §6.1",
        "leakscope.core.encoders.glove:GloVeEncoder",
        formula=_MEAN,
        label="GloVe",
        colour="#B5A900",
    ),
    "dual_lstm": FittedEncoderEntry(
        "Dual encoder, LSTM",
        "Trained here to find a sentence's successor among 800 others; recurrent.",
        "Song & Raghunathan (2020), Eq. 2",
        "leakscope.core.encoders.dual.encoder:LSTMDualEncoder",
        formula=_NEXT,
        learns_from="neighbours",
        label="dual LSTM",
        colour="#8C6D46",
    ),
    "dual_transformer": FittedEncoderEntry(
        "Dual encoder, Transformer",
        "Trained here to find a sentence's successor among 800 others; three Transformer layers.",
        "Song & Raghunathan (2020), Eq. 2",
        "leakscope.core.encoders.dual.encoder:TransformerDualEncoder",
        formula=_NEXT,
        learns_from="neighbours",
        label="dual Transformer",
        colour="#B08D57",
    ),
    "adversarial_lstm": FittedEncoderEntry(
        "Dual encoder, LSTM, adversarial",
        "The recurrent dual encoder, trained against an adversary that inverts its vectors.",
        "Song & Raghunathan (2020), §7",
        "leakscope.core.defences.trained.adversarial_dual:AdversarialLSTM",
        formula=_AGAINST,
        learns_from="neighbours",
        label="adversarial LSTM",
        colour="#5F6B2E",
    ),
    "adversarial_transformer": FittedEncoderEntry(
        "Dual encoder, Transformer, adversarial",
        "The Transformer dual encoder, trained against an adversary that inverts its vectors.",
        "Song & Raghunathan (2020), §7",
        "leakscope.core.defences.trained.adversarial_dual:AdversarialTransformer",
        formula=_AGAINST,
        learns_from="neighbours",
        label="adversarial Transformer",
        colour="#8F9E4B",
    ),
    "sbert": FittedEncoderEntry(
        "Sentence-BERT, fine-tuned here",
        "A language model trained so that its cosines match human similarity scores.",
        "Reimers & Gurevych (2019)",
        "leakscope.core.encoders.sbert.encoder:SentenceBERT",
        formula=r"\min_\Phi\ \sum_{(a, b, s)} \big(\cos(\Phi(a), \Phi(b)) - s / 5\big)^2",
        learns_from="scores",
        label="S-BERT here",
        colour="#A63D00",
    ),
    "defended": EncoderEntry(
        "Encoder with a trained defence",
        "defended:FOLDER, an encoder with a defence that `defend` trained for it",
        "Song & Raghunathan (2020), §7; Belrose et al. (2023)",
        "leakscope.core.defences.stored:open_defended",
        argument="FOLDER",
        formula=r"\tilde\Phi(x) = f\big(\Phi(x)\big)",
        label="defended",
    ),
}

FITTED_ENCODERS: Mapping[str, FittedEncoderEntry] = FilteredRegistry(
    ENCODERS, lambda entry: isinstance(entry, FittedEncoderEntry)
)
"""The encoders that are fitted on a corpus here."""

FITTED_ON_TEXTS: Mapping[str, FittedEncoderEntry] = FilteredRegistry(
    FITTED_ENCODERS, lambda entry: entry.learns_from == "texts"
)
"""The fitted encoders that need only texts, in any order."""


def preparable() -> tuple[str, ...]:
    """Return the names of encoders that need only texts: fitted ones first, then bundled ones."""
    return (*FITTED_ON_TEXTS, *(name for name, entry in ENCODERS.items() if not entry.argument))
