"""Faults that would spoil a result or a promise, each with the tests that have to notice it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MUTANTS", "Mutant"]


@dataclass(frozen=True)
class Mutant:
    """A fault: what is changed in a file, and the tests that must fail then.

    Attributes
    ----------
    name : str
        What goes wrong.
    old, new : str
        What stands in the file, once, and what is put there.
    tests : tuple of str
        As pytest takes them.
    excuse : str
        Why no test can notice it, where none can.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    excuse: str = ""


_DP = "core/defences/metric_dp"
_INV = "core/attacks/inversion"
_TRADEOFF = "core/studies/tradeoff"

MUTANTS: tuple[Mutant, ...] = (
    # The noise that is promised
    Mutant("half the noise on tokens of a text", f"{_DP}/mechanisms.py",
           "self._vectors.shape[1], self.eta, rng=self._rng)",
           "self._vectors.shape[1], 2 * self.eta, rng=self._rng)",
           ("tests/test_metric_dp.py",)),
    Mutant("half the noise on a text's vector", f"{_DP}/mechanisms.py",
           "vectors.shape[1], self.eta, rng=rng)", "vectors.shape[1], 2 * self.eta, rng=rng)",
           ("tests/test_metric_dp.py",)),
    Mutant("half the noise on token vectors", f"{_DP}/mechanisms.py",
           "table.shape[1], eta, rng=rng)", "table.shape[1], 2 * eta, rng=rng)",
           ("tests/test_metric_dp.py",)),
    Mutant("one draw of noise for all tokens of a block", f"{_DP}/mechanisms.py",
           "noise = draw_noise(len(block), self._vectors", "noise = draw_noise(1, self._vectors",
           ("tests/test_metric_dp.py",)),
    Mutant("a Gamma of half the dimension", f"{_DP}/noise.py",
           "rng.gamma(dimension, 1.0 / eta", "rng.gamma(dimension / 2, 2.0 / eta",
           ("tests/test_metric_dp.py",)),
    Mutant("a normal law for the length of the noise", f"{_DP}/noise.py",
           "norms = rng.gamma(dimension, 1.0 / eta, size=(n_draws, 1))",
           "norms = rng.normal(dimension / eta, dimension**0.5 / eta / 3, size=(n_draws, 1))",
           ("tests/test_metric_dp.py",)),
    Mutant("directions that are not uniform", f"{_DP}/noise.py",
           "directions = rng.standard_normal((n_draws, dimension))",
           "directions = rng.uniform(-1, 1, (n_draws, dimension))",
           ("tests/test_metric_dp.py",)),
    Mutant("an η of zero is taken", f"{_DP}/noise.py", "0 < eta <", "0 <= eta <",
           ("tests/test_metric_dp.py", "tests/test_contract_defences.py")),
    # Defences that change the vector alone
    Mutant("rounding keeps a digit more", "core/defences/vectors.py",
           "np.round(v, self.decimals)", "np.round(v, self.decimals + 1)",
           ("tests/test_contract_defences.py",)),
    Mutant("half the normal noise", "core/defences/vectors.py",
           "v + self.sigma * rng", "v + 0.5 * self.sigma * rng",
           ("tests/test_contract_defences.py",)),
    Mutant("truncation keeps the last numbers", "core/defences/vectors.py",
           "v[:, : self.dimension], self", "v[:, -self.dimension :], self",
           ("tests/test_contract_defences.py",)),
    Mutant("a projection that ignores its seed", "core/defences/vectors.py",
           "rng = np.random.default_rng(self.seed)\n        matrix",
           "rng = np.random.default_rng(0)\n        matrix",
           ("tests/test_contract_defences.py",)),
    Mutant("binary vectors of another length", "core/defences/vectors.py",
           "/ np.sqrt(v.shape[1]))", ")", ("tests/test_contract_defences.py",)),
    # What is scored
    Mutant("a bootstrap that ignores its seed", "core/metrics.py",
           "    rng = np.random.default_rng(seed)\n    means",
           "    rng = np.random.default_rng(0)\n    means", ("tests/test_metrics.py",)),
    Mutant("a correlation's bootstrap that ignores its seed", "core/metrics.py",
           "default_rng([seed, 1])", "default_rng([0, 1])", ("tests/test_metrics.py",)),
    Mutant("an interval of 90 per cent called one of 95", "core/metrics.py",
           "[(1 - level) / 2, (1 + level) / 2]", "[(1 - level), level]",
           ("tests/test_metrics.py",)),
    Mutant("the mean of precision and recall for F1", "core/metrics.py",
           "2 * precision * recall / total if total else 0.0", "total / 2",
           ("tests/test_metrics.py", "tests/test_doctests.py")),
    Mutant("an empty answer is precise", "core/metrics.py",
           "precision = hit / said if said else 0.0", "precision = hit / said if said else 1.0",
           ("tests/test_metrics.py",)),
    Mutant("a word's weight that forgets how many hold it", "core/metrics.py",
           "np.log((n + 1) / (c + 1))", "np.log((n + 1) / 2)", ("tests/test_metrics.py",)),
    Mutant("seeds make an interval too narrow", "core/metrics.py",
           "max(within, between) / len(values)", "min(within, between) / len(values)",
           ("tests/test_metrics.py",)),
    Mutant("words that the attack cannot name are left out of all words", f"{_INV}/evaluation.py",
           "all_words = [word_set(text) - known.stop_words for text in sample]",
           "all_words = [known.targets(text) for text in sample]",
           ("tests/test_evaluation.py",)),
    Mutant("guessing from words outside the scope", f"{_INV}/evaluation.py",
           "PriorAttack().fit_vocabulary(encoder, scope)",
           "PriorAttack().fit_vocabulary(encoder, known)",
           ("tests/test_evaluation.py",)),
    Mutant("texts drawn without regard to the seed", f"{_INV}/evaluation.py",
           "np.random.default_rng(seed).choice(n", "np.random.default_rng(0).choice(n",
           ("tests/test_evaluation.py",)),
    # Attacks
    Mutant("the sampled softmax is not corrected", f"{_INV}/msp/network.py",
           "logits + correction[:, None], dim=2", "logits, dim=2", ("tests/test_msp.py",)),
    Mutant("the correction has the wrong sign", f"{_INV}/msp/network.py",
           "correction = -candidates.log_inclusion", "correction = candidates.log_inclusion",
           ("tests/test_msp.py",)),
    Mutant("a text's own words are corrected too", f"{_INV}/msp/network.py",
           "correction.masked_fill_(own, 0.0)", "correction.masked_fill_(own & False, 0.0)",
           ("tests/test_msp.py",)),
    Mutant("a word may be named twice", f"{_INV}/msp/network.py",
           "named_mask.scatter_(1, named, value=True)",
           "named_mask.scatter_(1, named, value=False)", ("tests/test_msp.py",)),
    Mutant("vectors neither centred nor scaled", f"{_INV}/classifiers/mlc.py",
           "start, pairs.vocabulary.log_odds, pairs.vectors.mean(0), scale=1 / max(spread, 1e-6)",
           "start, pairs.vocabulary.log_odds, 0 * pairs.vectors.mean(0), scale=1.0",
           ("tests/test_word_classifiers.py",)),
    Mutant("the probe does not take off the mean", f"{_INV}/probe.py",
           "vectors if self.centre_ is None else vectors - self.centre_", "vectors",
           ("tests/test_probe.py",)),
    Mutant("the farthest sentences vote", f"{_INV}/retrieval.py",
           "np.argpartition(-cosine, k - 1", "np.argpartition(cosine, k - 1",
           ("tests/test_retrieval.py",)),
    Mutant("near sentences weigh as far ones", f"{_INV}/retrieval.py",
           "np.exp((similarity - similarity.max(1, keepdims=True)) / self.temperature)",
           "np.ones_like(similarity)", ("tests/test_retrieval.py",)),
    # Who may know what
    Mutant("targets drawn from known documents", "core/studies/domains.py",
           "targets = held.sentences().without(known_sentences).texts",
           "targets = known_sentences.texts", ("tests/test_leaks.py",)),
    Mutant("targets that the attacker knows word for word", "core/studies/domains.py",
           "held.sentences().without(known_sentences).texts", "held.sentences().texts",
           ("tests/test_leaks.py",)),
    Mutant("an attack on its own training sentences", "core/studies/encoders.py",
           "        encoder,\n        domain.targets,\n        seed=cell",
           "        encoder,\n        domain.auxiliary,\n        seed=cell",
           ("tests/test_leaks.py",)),
    Mutant("a study of attacks on known sentences", "core/studies/attacks.py",
           "held.sentences().without(auxiliary).texts, n, seed)", "auxiliary.texts, n, seed)",
           ("tests/test_leaks.py",)),
    Mutant("cross-domain attackers know the target's own texts", "core/studies/domains.py",
           'own = known_sentences.texts if domain == "in" else',
           'own = known_sentences.texts if domain else', ("tests/test_leaks.py",)),
    Mutant("a trade-off attacker trained on undefended vectors", f"{_TRADEOFF}_attack.py",
           "[protected.encode(texts.known) for _ in range(n_copies)]",
           "[own.encode(texts.known)[:, : protected.dimension] for _ in range(n_copies)]",
           ("tests/test_tradeoff.py",)),
    Mutant("a trade-off attacker scored on its training sentences", f"{_TRADEOFF}_attack.py",
           "attack, attacked, texts.targets, vectors=vectors",
           "attack, attacked, texts.known[:60], vectors=None",
           ("tests/test_tradeoff_leaks.py",)),
    Mutant("trade-off targets drawn from known texts", f"{_TRADEOFF}_texts.py",
           "chosen(held), chosen(order[:n_targets])", "chosen(held), chosen(known[:n_targets])",
           ("tests/test_tradeoff_leaks.py",)),
    Mutant("trade-off targets that shipped weights were trained on", f"{_TRADEOFF}_texts.py",
           "_apart(texts, n_targets) if held_out is None else _marked(texts, held_out)",
           "_apart(texts, n_targets)", ("tests/test_tradeoff_leaks.py",)),
    Mutant("usefulness tested on its training texts", "core/tasks/labelled.py",
           "_some(known, n_train, rng), _some(held, n_test, rng)",
           "_some(known, n_train, rng), _some(known, n_test, rng)",
           ("tests/test_tradeoff_leaks.py",)),
    Mutant("an encoder fitted on another file is taken up", "core/studies/domains.py",
           '{**fit_on, "contents": list(contents), "settings"', '{**fit_on, "settings"',
           ("tests/test_named_studies.py",)),
    Mutant("cells of other texts are measured", "core/studies/domains.py",
           "if content_of(cell[name]) != content:", "if not content_of(cell[name]):",
           ("tests/test_named_studies.py",)),
    Mutant("names that are probed for are in the training texts", "core/studies/names.py",
           "known = without_names(domain.auxiliary, unseen)", "known = list(domain.auxiliary)",
           ("tests/test_names.py", "tests/test_cli_names.py")),
    Mutant("equal documents on both sides of a split", "core/corpora/document.py",
           '" ".join(self.text.split())', '" ".join(self.text.split()) + self.id',
           ("tests/test_corpora.py",)),
    # What is kept
    Mutant("weights that were altered are read", "core/store.py",
           'if digest_file(path) != meta.get("arrays_sha256"):',
           'if digest_file(path) != meta.get("arrays_sha256") and False:',
           ("tests/test_store.py",)),
    Mutant("a classifier tested on its training texts", "core/studies/classification.py",
           "said, held_labels = search.predict(encoder.encode(held)), np.asarray(held_labels)",
           "said, held_labels = search.predict(encoder.encode(known)), np.asarray(known_labels)",
           ("tests/test_leaks.py", "-k", "classifier")),
    Mutant("a search for settings judged by known texts", "core/studies/tuning.py",
           "held = [texts[i] for i in sorted(order[:n_held]",
           "held = [texts[i] for i in sorted(order[n_held:]",
           ("tests/test_leaks.py", "-k", "tuning")),
    Mutant("paragraphs of known articles are attacked", "core/studies/passages.py",
           "gather_paragraphs(held.sentences().without(known.sentences()), *n_words)",
           "gather_paragraphs(known.sentences(), *n_words)",
           ("tests/test_leaks.py", "-k", "paragraphs")),
    Mutant("a version is not part of a cell", "core/studies/context.py",
           "        **_versions(used, version),\n", "",
           ("tests/test_versions.py",)),
    Mutant("cells of any order of entries are different", "core/studies/runner.py",
           "sort_keys=True, ensure_ascii=False", "sort_keys=False, ensure_ascii=False",
           ("tests/test_doctests.py",)),
    Mutant("a failed cell is taken for finished", "core/studies/runner.py",
           "    if outcome.error:\n", "    if False:\n", ("tests/test_runner.py",)),
    Mutant("workers outlive their study", "core/studies/runner.py",
           "while os.getppid() == parent:", "while True:", ("tests/test_runner.py",)),
    # Training
    Mutant("the last epoch is kept, not the best", "core/training/loop.py",
           "    run.restore_best()\n", "", ("tests/test_training_loop.py",)),
    Mutant("batches in the same order each epoch", "core/training/loop.py",
           "default_rng([self.seed, epoch]).permutation", "default_rng([self.seed]).permutation",
           ("tests/test_training_loop.py",)),
    Mutant("a resumed run forgets its random state", "core/training/loop.py",
           '        torch.set_rng_state(tensors["random"])\n', "",
           ("tests/test_training_loop.py",)),
    Mutant("the checkpoint of another run is taken up", "core/training/loop.py",
           'if meta.get("identity") != self.loop.identity:',
           'if meta.get("identity") is None:', ("tests/test_training_loop.py",)),
    Mutant("sentences in context count as negatives", "core/encoders/dual/training.py",
           "(a @ b.T).masked_fill(in_context & ~own, -torch.inf)", "(a @ b.T)",
           ("tests/test_dual_encoders.py",)),
    Mutant("padding is averaged with the words", "core/encoders/pooling.py",
           "(states * weights).sum(1) / weights.sum(1).clamp(min=1)",
           "states.mean(1) + 0 * weights.sum()",
           ("tests/test_encoders.py",)),
    # Jobs
    Mutant("one visitor fills the queue", "core/jobs/queue.py",
           "if self._turns.count(owner) >= self.max_waiting_each:", "if False:",
           ("tests/test_jobs.py",)),
    Mutant("a stopped job's result is shown", "core/jobs/entry.py",
           "self.state = JobState.STOPPED if self.must_stop else ended.state",
           "self.state = ended.state", ("tests/test_jobs.py",)),
    Mutant("old jobs are kept for ever", "core/jobs/queue.py",
           "return entry.asked + min(self.keep_seconds, entry.keep_seconds)",
           'return float("inf")', ("tests/test_jobs.py",)),
)  # fmt: skip
"""In the order of what they would spoil."""
