from __future__ import annotations

import os
import sys
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from command_line import run_python
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.core.corpora import (
    CORPORA,
    Columns,
    Corpus,
    Document,
    bundled_sentences,
    load_corpus,
)
from leakscope.core.corpora.lee import load_lee
from leakscope.core.corpora.readers import gensim_files
from leakscope.core.errors import (
    ArtifactError,
    CoreError,
    InvalidInputError,
    MissingDependencyError,
    ModelUnavailableError,
)
from leakscope.core.text import words

ROOT = Path(__file__).parent.parent
EIGHT = "one two three four five six seven eight"


def numbered(first: int, n: int) -> str:
    """Return a sentence of n words that differ from those of other first numbers."""
    return "W" + " ".join(f"{first:03}{i:02}" for i in range(n)) + "."


def corpus_of(*texts: str, **options: Any) -> Corpus:
    return Corpus("t", tuple(Document(f"{i}", t) for i, t in enumerate(texts)), **options)


# Documents and their identity ---------------------------------------------------------------


def test_the_hash_is_the_documented_one() -> None:
    import hashlib

    corpus = Corpus("any", (Document("7", "Ciao è", "a"),), language="it")
    expected = b"2:it" + b"5:False" + b"1:7" + b"7:Ciao \xc3\xa8" + b"1:a" + b"-"
    assert corpus.content_hash == hashlib.sha256(expected).hexdigest()


BASE = (Document("1", "ab", "x", "u"), Document("2", "cd", "y", "v"))


@pytest.mark.parametrize(
    "documents",
    [
        BASE[::-1],
        BASE[:1],
        (Document("3", "ab", "x", "u"), BASE[1]),
        (Document("1", "ab ", "x", "u"), BASE[1]),
        (Document("1", "ab", "z", "u"), BASE[1]),
        (Document("1", "ab", None, "u"), BASE[1]),
        (Document("1", "ab", "", "u"), BASE[1]),
        (Document("1", "ab", "x", "w"), BASE[1]),
        (Document("1", "ab", "xu", ""), BASE[1]),
    ],
)
def test_the_hash_changes_with_the_content(documents: tuple[Document, ...]) -> None:
    assert Corpus("t", documents).content_hash != Corpus("t", BASE).content_hash


def test_the_hash_changes_with_how_the_content_is_cut() -> None:
    hashes = {
        Corpus("t", BASE, language=language, is_split=is_split).content_hash
        for language in ("en", "it")
        for is_split in (False, True)
    }
    assert len(hashes) == 4


def test_the_hash_changes_with_nothing_else() -> None:
    assert Corpus("a", BASE, "free").content_hash == Corpus("b", BASE, "closed").content_hash


def test_two_documents_with_one_id_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="two documents with the id 'x'"):
        Corpus("t", (Document("x", "a"), Document("x", "b")))


def test_head_keeps_the_first_documents() -> None:
    corpus = corpus_of("a", "b", "c")
    assert [d.text for d in corpus.head(2).documents] == ["a", "b"]
    assert corpus.head(None) is corpus
    with pytest.raises(InvalidInputError, match="limit must be at least 1, got 0"):
        corpus.head(0)


# Sentences and paragraphs -------------------------------------------------------------------


def test_sentences_within_the_bounds_are_kept_with_their_document() -> None:
    documents = (
        Document("d1", f"Too short. {EIGHT}! {numbered(1, 40)}", "news", "ada"),
        Document("d2", f"{numbered(2, 41)} {numbered(3, 7)} {numbered(4, 9)}", "sport"),
    )
    kept = Corpus("t", documents).sentences()
    assert kept.texts == (f"{EIGHT}!", numbered(1, 40), numbered(4, 9))
    assert kept.document_ids == ("d1", "d1", "d2")
    assert kept.labels == ("news", "news", "sport")
    assert kept.authors == ("ada", "ada", None)


def test_only_words_of_two_characters_count() -> None:
    seven = EIGHT.replace("one", "I") + "."
    assert corpus_of(seven).sentences().texts == ()
    assert corpus_of(seven).sentences(min_words=7).texts == (seven,)


def test_white_space_is_collapsed_and_case_kept() -> None:
    text = "One  Two\tthree four\n five six\u00a0seven EIGHT."
    assert corpus_of(text).texts == ("One Two three four five six seven EIGHT.",)


def test_a_text_that_comes_again_is_left_out() -> None:
    kept = corpus_of(f"{EIGHT}. {EIGHT}.", f"{EIGHT}.  {EIGHT.title()}.").sentences()
    assert kept.texts == (f"{EIGHT}.", f"{EIGHT.title()}.")
    assert kept.document_ids == ("0", "1")


def test_documents_that_are_sentences_are_not_split() -> None:
    text = "one two three. four five six. seven eight."
    assert corpus_of(text, is_split=True).texts == (text,)
    assert corpus_of(text).texts == ()


def test_no_sentence_is_no_error() -> None:
    assert len(corpus_of("Short.").sentences()) == 0
    assert len(Corpus("t", ()).sentences()) == 0
    assert corpus_of("Short.").paragraphs() == ()


@pytest.mark.parametrize("bounds", [(0, 5), (6, 5)])
def test_wrong_bounds_are_refused(bounds: tuple[int, int]) -> None:
    with pytest.raises(InvalidInputError, match="1 ≤ min_words ≤ max_words"):
        corpus_of("a").sentences(*bounds)
    with pytest.raises(InvalidInputError, match="1 ≤ min_words ≤ max_words"):
        corpus_of("a").paragraphs(*bounds)


def test_paragraphs_join_consecutive_sentences_of_one_document() -> None:
    # 4 × 40 words give 160: a paragraph closes at the fourth; 30 + 30 more are too few.
    first = [numbered(i, 40) for i in range(4)]
    document = Document("d", " ".join([*first, numbered(8, 30), numbered(9, 30)]), "news")
    other = Document("e", " ".join(numbered(10 + i, 16) for i in range(8)))
    one, two = Corpus("t", (document, other)).paragraphs()
    assert one.sentences == tuple(first)
    assert one.text == " ".join(first)
    assert (one.document_id, one.label) == ("d", "news")
    assert len(words(two.text)) == 128
    assert two.document_id == "e"


def test_a_paragraph_never_exceeds_its_bound() -> None:
    # 10 + 15 exceed 24, so the first is dropped; 15 + 8 lie between 18 and 24.
    text = " ".join([numbered(1, 10), numbered(2, 15), numbered(3, 8)])
    corpus = corpus_of(text)
    assert [p.sentences for p in corpus.paragraphs(18, 24)] == [
        (numbered(2, 15), numbered(3, 8)),
    ]


@settings(deadline=None)  # a busy machine is no fault
@given(st.lists(st.lists(st.integers(1, 45), max_size=30), max_size=4))
def test_paragraphs_hold_to_the_bounds_of_the_paper(lengths: list[list[int]]) -> None:
    counter = iter(range(1000))
    texts = [" ".join(numbered(next(counter), n) for n in document) for document in lengths]
    corpus = corpus_of(*texts)
    kept = set(corpus.texts)
    used: list[str] = []
    for paragraph in corpus.paragraphs():
        assert 128 <= len(words(paragraph.text)) <= 168
        assert paragraph.text == " ".join(paragraph.sentences)
        assert paragraph.text in " ".join(
            s for s in corpus.texts if s in texts[int(paragraph.document_id)]
        )
        used.extend(paragraph.sentences)
    assert len(used) == len(set(used))
    assert set(used) <= kept


# Splits -------------------------------------------------------------------------------------


@settings(deadline=None)  # a busy machine is no fault
@given(
    st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=40),
    st.sampled_from([(0.5, 0.5), (0.8, 0.2), (0.6, 0.2, 0.2)]),
    st.integers(0, 2**32 - 1),
)
def test_parts_share_no_document_and_no_text(
    texts: list[str], fractions: tuple[float, ...], seed: int
) -> None:
    corpus = corpus_of(*texts)
    n_texts = len(set(texts))
    try:
        parts = corpus.split_by_document(fractions, seed)
    except InvalidInputError:
        assert n_texts < 5  # a share of 0.2 rounds to nothing
        return
    held = [{d.text for d in part.documents} for part in parts]
    assert sum(map(len, held)) == n_texts
    assert set().union(*held) == set(texts)
    assert sorted(d.id for part in parts for d in part.documents) == sorted(
        d.id for d in corpus.documents
    )
    assert all(abs(len(texts) - f * n_texts) <= 1 for texts, f in zip(held, fractions, strict=True))
    again = corpus.split_by_document(fractions, seed)
    assert [p.content_hash for p in parts] == [p.content_hash for p in again]


def test_the_seed_decides_the_parts() -> None:
    corpus = corpus_of(*(f"text {i}" for i in range(50)))
    firsts = {corpus.split_by_document((0.5, 0.5), seed)[0].content_hash for seed in range(5)}
    assert len(firsts) == 5


def test_documents_keep_their_order_in_a_part() -> None:
    part, _ = corpus_of(*(f"text {i}" for i in range(30))).split_by_document((0.7, 0.3))
    ids = [int(d.id) for d in part.documents]
    assert len(ids) == 21
    assert ids == sorted(ids)


@pytest.mark.parametrize("fractions", [(0.5,), (0.5, 0.6), (1.0, 0.0), (1.5, -0.5), ()])
def test_fractions_that_are_no_shares_are_refused(fractions: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="fractions must be positive and sum to 1"):
        corpus_of("a", "b").split_by_document(fractions)


def test_too_few_documents_for_the_parts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="1 distinct documents, too few"):
        corpus_of("a", "a ").split_by_document((0.5, 0.5))


CLASSES = Corpus(
    "news",
    (
        Document("1", "rates", "economy"),
        Document("2", "goals", "sport"),
        Document("3", "world", "general"),
        Document("4", "no class"),
        Document("5", "rates  ", "sport"),
        Document("6", "school", "school"),
    ),
)


def ids(corpus: Corpus) -> list[str]:
    return [d.id for d in corpus.documents]


def test_in_domain_is_the_class_and_cross_domain_the_others() -> None:
    inside, outside = CLASSES.split_by_class(["economy"], leave_out={"general"})
    assert ids(inside) == ["1"]
    assert ids(outside) == ["2", "6"]  # not 4, without class, nor 5, whose text is in-domain
    assert (inside.name, outside.name) == ("news: economy", "news: all but economy")


def test_classes_in_any_order_give_the_same() -> None:
    one = CLASSES.split_by_class({"economy", "school"})
    two = CLASSES.split_by_class(["school", "economy"])
    assert one == two
    assert ids(one[0]) == ["1", "6"]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["politics"], r"must be among: economy, sport, general, school; got \['politics'\]"),
        ([], "got none"),
        ("economy", "take lists of names, got a string"),
        (["economy", "sport", "general", "school"], "nothing is left for the cross-domain side"),
    ],
)
def test_classes_that_cannot_be_split_are_refused(classes: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CLASSES.split_by_class(classes)


def test_a_corpus_without_labels_cannot_be_split_by_class() -> None:
    with pytest.raises(InvalidInputError, match="its documents have no label"):
        corpus_of("a").split_by_class(["x"])


# The bundled sources ------------------------------------------------------------------------


def test_importing_the_package_imports_no_heavy_library() -> None:
    heavy = ["gensim", "pandas", "nltk", "pyarrow", "datasets", "torch"]
    code = f"import sys, leakscope.core.corpora; print([m for m in {heavy} if m in sys.modules])"
    done = run_python(code, check=True)
    assert done.stdout.strip() == "[]"


def test_lee_is_300_news_items() -> None:
    lee = load_corpus("lee")
    assert len(lee) == 300
    assert lee.documents[0].text.startswith("Hundreds of people have been forced to vacate")
    assert 2_300 <= len(lee.sentences()) <= 2_600
    assert len(lee.paragraphs()) > 200


@pytest.fixture(scope="module")
def wikipedia() -> Corpus:
    return load_corpus("wikipedia")


def test_wikipedia_is_prose(wikipedia: Corpus) -> None:
    assert len(wikipedia) > 90
    assert len(wikipedia.sentences()) > 15_000
    anarchism = next(d for d in wikipedia.documents if d.id == "Anarchism")
    assert anarchism.text.startswith(
        "Anarchism is a political philosophy that advocates self-governed societies based on "
        "voluntary institutions. These are often described as stateless societies, although"
    )


@pytest.mark.parametrize("mark", ["{{", "}}", "[[", "]]", "''", "==", "<ref", "\ue000", "&nbsp;"])
def test_no_markup_is_left(wikipedia: Corpus, mark: str) -> None:
    assert [t for t in wikipedia.texts if mark in t] == []


def test_bundled_is_both_and_splits_by_source(wikipedia: Corpus) -> None:
    bundled = load_corpus("bundled")
    assert bundled.labels == ("lee", "wikipedia")
    assert len(bundled) == 300 + len(wikipedia)
    inside, outside = bundled.split_by_class(["lee"])
    assert (len(inside), len(outside)) == (300, len(wikipedia))
    assert bundled_sentences() == list(bundled.texts)


def test_the_bundled_sentences_are_filtered_and_a_list_of_ones_own() -> None:
    texts = bundled_sentences()
    assert len(texts) == len(set(texts))
    assert all(8 <= len(words(text)) <= 40 for text in texts)
    texts.clear()
    assert len(bundled_sentences()) > 17_000


@pytest.fixture
def copied_gensim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package folder like gensim's, with the news alone."""
    package = tmp_path / "gensim"
    original = gensim_files.find_spec("gensim").submodule_search_locations[0]
    copy = package / "test" / "test_data" / "lee_background.cor"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(Path(original, "test", "test_data", copy.name).read_bytes())
    spec = types.SimpleNamespace(submodule_search_locations=[str(package)])
    monkeypatch.setattr(gensim_files, "find_spec", lambda name: spec)
    return copy


def test_a_bundled_file_is_read_where_it_lies(copied_gensim: Path) -> None:
    assert len(load_lee()) == 300


@pytest.mark.parametrize("damage", [lambda b: b[:-100], lambda b: b.replace(b"fire", b"ice!", 1)])
def test_a_bundled_file_that_was_altered_is_refused_by_name(
    copied_gensim: Path, damage: Any
) -> None:
    copied_gensim.write_bytes(damage(copied_gensim.read_bytes()))
    with pytest.raises(ArtifactError, match=r"lee_background\.cor is truncated or was altered"):
        load_lee()


def test_a_bundled_file_that_is_missing_is_named(copied_gensim: Path) -> None:
    copied_gensim.unlink()
    with pytest.raises(ArtifactError, match=r"lee_background.cor is missing.*force-reinstall"):
        load_lee()


def test_without_gensim_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gensim_files, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        load_lee()


# Opening by name ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", CORPORA)
def test_every_source_says_what_it_is_and_can_be_imported(name: str) -> None:
    source = CORPORA[name]
    assert source.title and source.summary and source.licence
    assert callable(source.load)


@pytest.mark.parametrize("name", ["", "leee", "nltk", "hub", "lee:x", "file:", "a\0b", "x" * 5000])
def test_what_names_no_corpus_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError):
        load_corpus(name)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"bundled, lee, wikipedia, nltk:NAME, hub:OWNER"):
        load_corpus("leee")


def test_a_path_is_a_file_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lee").write_text("My own text\n")
    monkeypatch.chdir(tmp_path)
    assert load_corpus("./lee").documents[0].text == "My own text"
    assert load_corpus(Path("lee")).documents[0].text == "My own text"
    assert load_corpus("file:lee").documents[0].text == "My own text"
    assert len(load_corpus("lee")) == 300


def test_a_limit_counts_documents() -> None:
    assert len(load_corpus("lee", limit=3)) == 3
    with pytest.raises(InvalidInputError, match="limit"):
        load_corpus("lee", limit=0)


def test_columns_are_refused_where_there_are_none() -> None:
    with pytest.raises(InvalidInputError, match="leave them out for lee"):
        load_corpus("lee", columns=Columns(text="body"))


def test_a_corpus_that_was_altered_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("first\nsecond\n")
    before = load_corpus(path).content_hash
    assert load_corpus(path, content_hash=before).content_hash == before
    path.write_text("first\nsecond!\n")
    with pytest.raises(ArtifactError, match=r"mine.txt was altered"):
        load_corpus(path, content_hash=before)


# NLTK ---------------------------------------------------------------------------------------


@pytest.fixture
def nltk_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An NLTK data folder of our own, with fresh readers that have seen no other."""
    import nltk.corpus
    import nltk.data
    from nltk.corpus.reader import (
        CategorizedPlaintextCorpusReader,
        CategorizedSentencesCorpusReader,
        CategorizedTaggedCorpusReader,
        NPSChatCorpusReader,
        PlaintextCorpusReader,
        StringCategoryCorpusReader,
        WordListCorpusReader,
    )
    from nltk.corpus.util import LazyCorpusLoader

    readers = {
        "gutenberg": (PlaintextCorpusReader, r".*\.txt"),
        "movie_reviews": (CategorizedPlaintextCorpusReader, r".*\.txt"),
        "brown": (CategorizedTaggedCorpusReader, r"c[a-z]\d\d"),
        "subjectivity": (CategorizedSentencesCorpusReader, r".*\.5000"),
        "qc": (StringCategoryCorpusReader, ["train.txt"]),
        "nps_chat": (NPSChatCorpusReader, r".*\.xml"),
        "names": (WordListCorpusReader, r".*\.txt"),
    }
    options: dict[str, dict[str, Any]] = {
        "movie_reviews": {"cat_pattern": r"(neg|pos)/.*"},
        "brown": {"cat_file": "cats.txt", "tagset": "brown"},
        "subjectivity": {"cat_map": {"quote.5000": ["subj"], "plot.5000": ["obj"]}},
    }
    for name, arguments in readers.items():
        fresh = LazyCorpusLoader(name, *arguments, **options.get(name, {}))
        monkeypatch.setattr(nltk.corpus, name, fresh)
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    yield tmp_path / "corpora"


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_plain_files_become_documents(nltk_folder: Path) -> None:
    put(nltk_folder / "gutenberg", {"a.txt": "[Emma]\n\nIt was a\nlong day.\n", "b.txt": "End."})
    corpus = load_corpus("nltk:gutenberg")
    assert [(d.id, d.text, d.label) for d in corpus.documents] == [
        ("a.txt", "[Emma]\n\nIt was a\nlong day.", None),
        ("b.txt", "End.", None),
    ]
    assert corpus.name == "nltk:gutenberg"
    assert len(load_corpus("nltk:gutenberg", limit=1)) == 1


def test_a_zipped_corpus_is_read_as_it_is(nltk_folder: Path) -> None:
    nltk_folder.mkdir()
    with zipfile.ZipFile(nltk_folder / "gutenberg.zip", "w") as archive:
        archive.writestr("gutenberg/a.txt", "It was a day.")
    assert load_corpus("nltk:gutenberg").documents[0].text == "It was a day."


def test_the_category_is_the_label(nltk_folder: Path) -> None:
    put(
        nltk_folder / "movie_reviews",
        {"neg/1.txt": "bad , truly , bad . \nand dull . ", "pos/2.txt": "good ."},
    )
    corpus = load_corpus("nltk:movie_reviews")
    assert [d.label for d in corpus.documents] == ["neg", "pos"]
    assert corpus.documents[0].text == "bad, truly, bad.\nand dull."


def test_tagged_tokens_become_prose(nltk_folder: Path) -> None:
    text = "The/at jury/nn said/vbd ``/`` no/at ''/'' ./.\nWho/wps ?/. ?/.\n"
    put(nltk_folder / "brown", {"ca01": text, "cats.txt": "ca01 news\n"})
    (document,) = load_corpus("nltk:brown").documents
    assert document == Document("ca01", 'The jury said "no".\n\nWho?', "news")


def test_listed_sentences_stay_whole(nltk_folder: Path) -> None:
    put(
        nltk_folder / "subjectivity",
        {"plot.5000": "he runs . she runs .\n", "quote.5000": "eh .\n"},
    )
    corpus = load_corpus("nltk:subjectivity")
    assert [(d.id, d.label) for d in corpus.documents] == [
        ("plot.5000:1", "obj"),
        ("quote.5000:1", "subj"),
    ]
    assert corpus.is_split
    assert len(corpus.sentences(1, 9)) == 2


def test_questions_have_their_coarse_class(nltk_folder: Path) -> None:
    put(nltk_folder / "qc", {"train.txt": "DESC:manner How did it end ?\n"})
    assert load_corpus("nltk:qc").documents == (Document("train.txt:1", "How did it end?", "DESC"),)


def test_chat_posts_have_their_author(nltk_folder: Path) -> None:
    posts = (
        '<Post class="Statement" user="ann">hi all</Post><Post class="System" user="x">JOIN</Post>'
    )
    put(
        nltk_folder / "nps_chat",
        {"10-19-20s_2posts.xml": f"<Session><Posts>{posts}</Posts></Session>"},
    )
    assert load_corpus("nltk:nps_chat").documents == (
        Document("10-19-20s_2posts.xml:1", "hi all", "20s", "ann"),
    )


def test_a_list_of_words_is_refused(nltk_folder: Path) -> None:
    put(nltk_folder / "names", {"female.txt": "Ada\n"})
    with pytest.raises(InvalidInputError, match="nltk:names holds no running text"):
        load_corpus("nltk:names")


@pytest.mark.parametrize("name", ["os", "LazyCorpusLoader", "__name__", "", "no_such", "../etc"])
def test_what_is_no_corpus_of_nltk_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a corpus of NLTK"):
        load_corpus(f"nltk:{name}")


def test_a_corpus_that_is_not_here_is_told_how_to_get(nltk_folder: Path) -> None:
    with pytest.raises(ModelUnavailableError, match=r"nltk.downloader gutenberg.*NLTK_DATA"):
        load_corpus("nltk:gutenberg")


@pytest.mark.parametrize("damage", [lambda b: b[:40], lambda b: b"PK" + b"x" * 50, lambda b: b""])
def test_a_damaged_archive_is_refused_by_name(nltk_folder: Path, damage: Any) -> None:
    nltk_folder.mkdir()
    path = nltk_folder / "gutenberg.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gutenberg/a.txt", "It was a day. " * 50)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CoreError, match="nltk:gutenberg"):
        load_corpus("nltk:gutenberg")


def test_a_file_in_another_encoding_is_refused_by_name(nltk_folder: Path) -> None:
    put(nltk_folder / "gutenberg", {"a.txt": "x"})
    (nltk_folder / "gutenberg" / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(ArtifactError, match="nltk:gutenberg is damaged"):
        load_corpus("nltk:gutenberg")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "labels", "n_sentences"),
    [("inaugural", (), 3_000), ("sentence_polarity", ("neg", "pos"), 9_000)],
)
def test_the_real_corpora_of_nltk(name: str, labels: tuple[str, ...], n_sentences: int) -> None:
    if "NLTK_DATA" not in os.environ:
        pytest.skip("NLTK_DATA is not set")
    try:
        corpus = load_corpus(f"nltk:{name}")
    except ModelUnavailableError as error:
        pytest.skip(f"{error}")
    assert corpus.labels == labels
    assert len(corpus.sentences()) > n_sentences


# The hub ------------------------------------------------------------------------------------


class Classes:
    def int2str(self, number: int) -> str:
        return ["bad", "good"][number]


class FakeDataset:
    features: ClassVar[dict[str, object]] = {"text": object(), "label": Classes()}
    info = types.SimpleNamespace(license="mit")
    rows = (
        {"text": "First.", "label": 1, "id": 7},
        {"text": "Second.", "label": -1, "id": 8},
        {"text": "Third.", "label": 0, "id": 9},
    )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from self.rows


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stands in for the datasets package and records how it is called."""
    calls: list[Any] = []

    def load_dataset(*args: Any, **kwargs: Any) -> FakeDataset:
        calls.append((args, kwargs))
        return FakeDataset()

    module = types.ModuleType("datasets")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    return calls


def test_rows_of_the_hub_become_documents(hub: list[Any]) -> None:
    corpus = load_corpus("hub:ada/notes")
    assert corpus.documents == (
        Document("1", "First.", "good"),
        Document("2", "Second.", None),
        Document("3", "Third.", "bad"),
    )
    assert (corpus.name, corpus.licence) == ("hub:ada/notes", "mit")
    assert len(load_corpus("hub:ada/notes", limit=2)) == 2


def test_the_longest_texts_of_the_hub_are_read_and_told(
    hub: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"text": "A title", "story": f"A story of many words, {i}.", "label": 0} for i in (1, 2)
    ]
    monkeypatch.setattr(FakeDataset, "rows", rows)
    corpus = load_corpus("hub:ada/notes")
    assert [d.text for d in corpus.documents] == [row["story"] for row in rows]
    assert corpus.notes == ("hub:ada/notes: using column `story`, which has the longest texts",)
    titles = load_corpus("hub:ada/notes#text")
    assert [d.text for d in titles.documents] == ["A title"] * 2 and titles.notes == ()


@pytest.mark.parametrize(
    ("reference", "args", "split"),
    [
        ("ada/notes", ("ada/notes", None), "train"),
        ("ada/notes:en", ("ada/notes", "en"), "train"),
        ("ada/notes:en:test", ("ada/notes", "en"), "test"),
        ("ada/notes::test", ("ada/notes", None), "test"),
    ],
)
def test_configuration_and_split_are_passed_and_code_is_never_trusted(
    hub: list[Any], reference: str, args: tuple[str, str | None], split: str
) -> None:
    load_corpus(f"hub:{reference}")
    assert hub == [(args, {"split": split, "streaming": True})]


def test_a_column_of_the_hub_that_is_not_there_is_named(hub: list[Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"no column 'body'.*'text', 'label', 'id'"):
        load_corpus("hub:ada/notes", columns=Columns(text="body"))


@pytest.mark.parametrize("reference", ["", "pandas", "imdb", "a/b/c", "/etc/x", "a/b:c:d:e", "a/"])
def test_a_reference_without_owner_or_of_another_form_is_refused(
    hub: list[Any], reference: str
) -> None:
    with pytest.raises(InvalidInputError, match="takes OWNER/NAME"):
        load_corpus(f"hub:{reference}")
    assert hub == []


def test_a_local_folder_is_not_taken_for_the_hub(
    hub: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ada" / "notes").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match="is a local path"):
        load_corpus("hub:ada/notes")


def test_a_hub_that_cannot_be_reached_is_one_message(
    hub: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ConnectionError("Couldn't reach 'ada/notes' on the Hub\nlong trace")

    monkeypatch.setattr(sys.modules["datasets"], "load_dataset", fail)
    with pytest.raises(ModelUnavailableError, match=r"on the Hub\. Check.*`bundled` always works"):
        load_corpus("hub:ada/notes")


def test_without_the_datasets_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDependencyError, match=r"pip install datasets=="):
        load_corpus("hub:ada/notes")
