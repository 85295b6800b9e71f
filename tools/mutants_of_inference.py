"""Faults in attacks on membership, memorisation and attributes, and in deniability and release."""

from __future__ import annotations

from tools.mutant import Mutant

_MEMBERS = "core/attacks/membership"
_CLASSIFIERS = f"{_MEMBERS}/classifiers"
_MEMORY = f"{_MEMBERS}/memorisation"
_ATTRIBUTES = "core/attacks/attributes"
_DENIABILITY = "core/defences/deniability"
_DP = "core/defences/metric_dp"

_LIKELIHOOD = ("tests/test_membership_likelihood.py",)
_NULL = ("tests/test_membership_null.py", *_LIKELIHOOD)
_FEATURES = ("tests/test_membership_features.py",)
_ROC = ("tests/test_membership_roc.py",)
_EXPOSURE = ("tests/test_exposure.py",)
_ONE_RUN = ("tests/test_one_run.py",)
_MEMORISATION = ("tests/test_memorisation.py", "tests/test_memorisation_leaks.py")
_ATTRIBUTE = ("tests/test_attributes.py", "tests/test_attribute_leaks.py")
_RELEASE = ("tests/test_release.py",)
_ETA = ("tests/test_eta_choice.py",)
_DENIABLE = ("tests/test_deniability.py",)

MUTANTS_OF_INFERENCE: tuple[Mutant, ...] = (
    # Released numbers
    Mutant(
        "noise is drawn as float16",
        f"{_DP}/noise.py",
        "    noise = np.empty((n_draws, dimension), dtype)\n",
        "    noise = np.empty((n_draws, dimension), np.float16)\n",
        ("tests/test_metric_dp.py", *_RELEASE),
    ),
    Mutant(
        "sums are released off the grid",
        f"{_DP}/release.py",
        "    np.rint(sums, out=sums)\n",
        "",
        _RELEASE,
    ),
    Mutant(
        "the grid is that of each vector",
        f"{_DP}/release.py",
        "    step = grid_step(scale)\n    sums",
        "    step = np.spacing(np.abs(vectors)).astype(np.float64)\n    sums",
        _RELEASE,
    ),
    Mutant(
        "a grid coarser than the noise",
        f"{_DP}/release.py",
        "math.floor(math.log2(scale / STEPS_PER_SCALE))",
        "math.floor(math.log2(scale * 10))",
        _RELEASE,
    ),
    Mutant(
        "one mechanism adds its noise by itself",
        f"{_DP}/mechanisms.py",
        "            return release_under_noise(encode_dense(encoder, texts, on_progress), "
        "self.eta, rng)\n",
        "            vectors = encode_dense(encoder, texts, on_progress)\n"
        "            return vectors + draw_noise(*vectors.shape, self.eta, rng=rng)\n",
        _RELEASE,
    ),
    Mutant(
        "an int8 step taken over the batch",
        "core/defences/vectors.py",
        "np.abs(vectors).max(1, keepdims=True)",
        "np.abs(vectors).max()",
        ("tests/test_contract_defences.py", "-k", "beside"),
    ),
    Mutant(
        "one noisy copy instead of several in the trade-off's attacker",
        "core/studies/tradeoff/attack.py",
        "n_copies = N_COPIES if is_noisy and is_last else 1",
        "n_copies = 1",
        ("tests/test_tradeoff_leaks.py", "-k", "noisy_copies"),
    ),
    Mutant(
        "the rounding grid excludes the input itself",
        "core/attacks/inversion/rounding_grid.py",
        "exponents - 25",
        "exponents - 24",
        _RELEASE,
    ),
    Mutant(
        "pairs of tokens are ignored under noisy vectors",
        "core/attacks/inversion/released_tokens/noisy_tokens.py",
        '        in_sequence = reading == "sequence"\n',
        "        in_sequence = False\n",
        ("tests/test_posterior_reader.py", "-k", "noisy_vectors_by_hand"),
    ),
    Mutant(
        "noise of float32 is released",
        f"{_DP}/release.py",
        "rng=rng, dtype=np.float64)\n    return release(vectors, noise, 1 / eta)",
        "rng=rng)\n    return release(vectors, noise.astype(np.float64), 1 / eta)",
        _RELEASE,
    ),
    # Membership: features of an answer
    Mutant(
        "the modified entropy as S21 prints it",
        f"{_CLASSIFIERS}/features.py",
        "    terms = probabilities * _log(without)\n",
        "    terms = probabilities * _log(probabilities)\n",
        _FEATURES,
    ),
    Mutant(
        "ties rank as if the true class were first",
        f"{_CLASSIFIERS}/features.py",
        "1.0 + above + alike / 2",
        "1.0 + above",
        _FEATURES,
    ),
    Mutant(
        "a scaled logit by 1 − p, which rounds to 0",
        f"{_CLASSIFIERS}/features.py",
        "_log(confidence(probabilities, labels)) - _log(rest(probabilities, labels))",
        "_log(confidence(probabilities, labels)) - _log(1 - confidence(probabilities, labels))",
        _FEATURES,
    ),
    Mutant(
        "features that are lower for members are not turned",
        f"{_CLASSIFIERS}/features.py",
        "return values, -1 if entry.is_lower_for_members else 1",
        "return values, 1",
        (*_FEATURES, "tests/test_membership_scores.py"),
    ),
    # Membership: likelihood ratios
    Mutant(
        "LiRA with the sides exchanged",
        f"{_CLASSIFIERS}/lira.py",
        "    return inside - log_normal(phi, sides.outside_mean(), deviation(sides.outside))\n",
        "    return log_normal(phi, sides.outside_mean(), deviation(sides.outside)) - inside\n",
        _LIKELIHOOD,
    ),
    Mutant(
        "offline LiRA asks how often a stranger does worse",
        f"{_CLASSIFIERS}/lira.py",
        "-log_ndtr(-scaled)",
        "-log_ndtr(scaled)",
        _LIKELIHOOD,
    ),
    Mutant(
        "a variance of its own from two models",
        f"{_CLASSIFIERS}/lira.py",
        "FEWEST_FOR_OWN = 32",
        "FEWEST_FOR_OWN = 2",
        _LIKELIHOOD,
    ),
    Mutant(
        "LiRA without the 1 subtracted from n",
        f"{_CLASSIFIERS}/lira.py",
        "side.squares / np.maximum(side.count - 1, 1)",
        "side.squares / side.count",
        _LIKELIHOOD,
    ),
    Mutant(
        "RMIA's offline mean without its ½",
        f"{_CLASSIFIERS}/rmia.py",
        "0.5 * ((1 + a) * _clip(outside) + (1 - a))",
        "((1 + a) * _clip(outside) + (1 - a))",
        _LIKELIHOOD,
    ),
    Mutant(
        "RMIA ignores how far a sample must stand out",
        f"{_CLASSIFIERS}/rmia.py",
        "ranked = np.sort(ratios[chosen] * gamma)",
        "ranked = np.sort(ratios[chosen])",
        _LIKELIHOOD,
    ),
    Mutant(
        "BaVarIA with one variance for both sides",
        f"{_CLASSIFIERS}/bavaria.py",
        "np.array([1.0, prior.ratio])\n",
        "np.array([1.0, 1.0])\n",
        _LIKELIHOOD,
    ),
    Mutant(
        "BaVarIA without the doubt in its means",
        f"{_CLASSIFIERS}/bavaria.py",
        '    squares = squares + np.einsum("ni,ij,nj->n", off, prior.precision, off)\n',
        "",
        _LIKELIHOOD,
    ),
    Mutant(
        "Student's density with half of its power",
        f"{_CLASSIFIERS}/bavaria.py",
        "(freedom + 1) / 2 * np.log1p(",
        "freedom / 2 * np.log1p(",
        _LIKELIHOOD,
    ),
    Mutant(
        "constant answers are evidence",
        f"{_CLASSIFIERS}/bavaria.py",
        "np.where(psi == self.agreed_, 0.0, self.posterior_.log_odds(psi))",
        "self.posterior_.log_odds(psi)",
        ("tests/test_membership_design.py", *_NULL),
    ),
    Mutant(
        "RMIA tuned with the model that is played",
        f"{_CLASSIFIERS}/rmia.py",
        "others = np.arange(len(values)) != played",
        "others = np.arange(len(values)) >= 0",
        _LIKELIHOOD,
    ),
    # Membership: users, curves and rates
    Mutant(
        "a user's variance with one subtracted from n",
        f"{_CLASSIFIERS}/users.py",
        "    variance = users.means((values - mean[users.rows]) ** 2)\n",
        "    counts = np.maximum(np.bincount(users.rows) - 1, 1)\n"
        "    variance = users.sums((values - mean[users.rows]) ** 2) / counts\n",
        ("tests/test_membership_scores.py", "tests/test_doctests.py"),
    ),
    Mutant(
        "Student widening of the AUC interval dropped",
        f"{_MEMBERS}/roc.py",
        "widening = stdtrit(n - 1, 0.975) / ndtri(0.975)",
        "widening = 1.0",
        _ROC,
    ),
    Mutant(
        "the AUC of all pairs right is certain",
        f"{_MEMBERS}/roc.py",
        "low = min(low, sure) if value == 1.0 else low",
        "low = low",
        _ROC,
    ),
    Mutant(
        "ties count as right in the AUC",
        f"{_MEMBERS}/roc.py",
        "np.cumsum(outside, axis=1) - outside / 2",
        "np.cumsum(outside, axis=1)",
        _ROC,
    ),
    Mutant(
        "users are resampled text by text",
        f"{_MEMBERS}/roc.py",
        "        rows = cluster_ids(ranking.units, len(ranking.scores))\n        n_units",
        "        rows = np.arange(len(ranking.scores))\n        n_units",
        _ROC,
    ),
    Mutant(
        "the interval of a rate takes its threshold as known",
        f"{_MEMBERS}/rates.py",
        "    kept = weights > 1e-9\n",
        "    kept = weights == weights.max()\n",
        (*_ROC, "tests/test_rate_coverage.py"),
    ),
    Mutant(
        "a rate that one non-member tells is resolvable",
        f"{_MEMBERS}/rates.py",
        "FEWEST_EXPECTED = 10",
        "FEWEST_EXPECTED = 1",
        (*_ROC, "tests/test_membership_verdict.py"),
    ),
    Mutant(
        "an accusation is worth the same at every prior",
        f"{_MEMBERS}/rates.py",
        "accused = tpr * prior + fpr * (1 - prior)",
        "accused = tpr * prior + fpr * prior",
        _ROC,
    ),
    # Memorisation
    Mutant(
        "a canary ranks before its equals",
        f"{_MEMORY}/exposure.py",
        "np.sum(others <= own)",
        "np.sum(others < own)",
        _EXPOSURE,
    ),
    Mutant(
        "an exposure beyond what R can show",
        f"{_MEMORY}/exposure.py",
        "    return min(max(found, 0.0), most) if not math.isnan(found) else most\n",
        "    return max(found, 0.0) if not math.isnan(found) else most\n",
        _EXPOSURE,
    ),
    Mutant(
        "the bits that a sample shows by its lower end",
        f"{_MEMORY}/exposure.py",
        "beta.ppf(0.975, n_before + 1, n - n_before)",
        "beta.ppf(0.025, n_before + 1, n)",
        _EXPOSURE,
    ),
    Mutant(
        "chance exposes no bit",
        f"{_MEMORY}/exposure.py",
        "math.log2(size) - math.lgamma(size + 1) / math.log(2) / size",
        "0.0",
        _EXPOSURE,
    ),
    Mutant(
        "the audit forgets what δ gives away",
        f"{_MEMORY}/one_run.py",
        "beta + 2 * n_canaries * delta * float(np.max(within / i))",
        "beta",
        _ONE_RUN,
    ),
    Mutant(
        "the audit guesses by the lowest scores",
        f"{_MEMORY}/one_run.py",
        "    guesses[order[:n_out]] = -1\n"
        "    guesses[order[len(order) - (n_guesses - n_out) :]] = 1\n",
        "    guesses[order[:n_out]] = 1\n"
        "    guesses[order[len(order) - (n_guesses - n_out) :]] = -1\n",
        _ONE_RUN,
    ),
    # Attributes
    Mutant(
        "runs begin with texts that go on from those before",
        f"{_ATTRIBUTES}/draw.py",
        "(min(GAP, length - 1) if start else 0)",
        "0",
        _ATTRIBUTE,
    ),
    Mutant(
        "labelled and attacked texts are of the same groups",
        f"{_ATTRIBUTES}/draw.py",
        '        units.setdefault(f"{row}" if groups is None else groups[row], []).append(row)\n',
        '        units.setdefault(f"{row}", []).append(row)\n',
        _ATTRIBUTE,
    ),
    Mutant(
        "targets that repeat labelled texts stay",
        f"{_ATTRIBUTES}/draw.py",
        "kept = [i for i in range(len(targets)) if i not in repeated]",
        "kept = [*range(len(targets))]",
        _ATTRIBUTE,
    ),
    Mutant(
        "the control keeps the labels",
        f"{_ATTRIBUTES}/experiment.py",
        "        if self.is_shuffled:\n",
        "        if False:\n",
        _ATTRIBUTE,
    ),
    Mutant(
        "topic share without the chance taken off",
        f"{_ATTRIBUTES}/answers.py",
        "same.hits(k) - chance, other.hits(k) - chance",
        "same.hits(k), other.hits(k)",
        _ATTRIBUTE,
    ),
    Mutant(
        "guessing knows one label fewer",
        f"{_ATTRIBUTES}/answers.py",
        "return float(counts[:k].sum() / len(self.truth))",
        "return float(counts[: k - 1].sum() / len(self.truth))",
        _ATTRIBUTE,
    ),
    Mutant(
        "the likeliest of equal labels is the true one",
        f"{_ATTRIBUTES}/answers.py",
        "((part > own) | ((part == own) & is_before)).sum(1)",
        "(part > own).sum(1)",
        ("tests/test_doctests.py", *_ATTRIBUTE),
    ),
    # Deniability
    Mutant(
        "an η is recommended though a smaller one breaks the bound",
        f"{_DENIABILITY}/eta_choice.py",
        "    return int(np.logical_and.accumulate(holds).sum())\n",
        "    return int(np.flatnonzero(holds)[-1]) + 1 if holds.any() else 0\n",
        _ETA,
    ),
    Mutant(
        "η certified for one token, not for the vocabulary",
        f"{_DENIABILITY}/eta_choice.py",
        "alpha = (1 - _check_confidence(confidence)) / len(found.tokens)",
        "alpha = 1 - _check_confidence(confidence)",
        _ETA,
    ),
    Mutant(
        "distinct outputs counted in the order of the draws",
        f"{_DENIABILITY}/engine.py",
        "        ordered = np.sort(self.places(eta), axis=1)\n",
        "        ordered = self.places(eta)\n",
        _DENIABLE,
    ),
    Mutant(
        "a token returns from half of its η on",
        f"{_DENIABILITY}/engine.py",
        "        doubled: NDArray[np.float32] = 2 * first\n",
        "        doubled: NDArray[np.float32] = 1 * first\n",
        _DENIABLE,
    ),
    Mutant(
        "the tokens of a draw count as independent",
        f"{_DENIABILITY}/sentence.py",
        "1.96 * shares.std(ddof=1) / np.sqrt(len(shares))",
        "1.96 * shares.std(ddof=1) / np.sqrt(len(shares) * len(self.ids))",
        ("tests/test_deniability.py", "-k", "each_draw"),
    ),
)
