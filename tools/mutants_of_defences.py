"""Faults in the mathematics of what came after d_χ, and of defences that are trained."""

from __future__ import annotations

from tools.mutant import Mutant

_DP = "core/defences/metric_dp"
_TRAINED = "core/defences/trained"
_AUDIT = "tests/test_choice_audit.py"
_MASKING = f"{_TRAINED}/under_noise/masking.py"
_MASKS = ("tests/test_masking.py::test_what_each_loss_asks_for_by_hand",)
_ENDS_ALIKE = (
    "tests/test_killed_training.py::"
    "test_what_was_killed_within_an_epoch_ends_bit_for_bit_as_what_was_not"
)

MUTANTS_OF_DEFENCES: tuple[Mutant, ...] = (
    # Mechanisms that choose a token
    Mutant(
        "SanText without the half of its exponent",
        f"{_DP}/exponential_mechanism.py",
        "    return -0.5 * epsilon * distances\n",
        "    return -epsilon * distances\n",
        ("tests/test_choices.py", _AUDIT),
    ),
    Mutant(
        "SanText+ replaces frequent tokens as often as rare ones",
        f"{_DP}/exponential_mechanism.py",
        "        is_drawn |= self._is_sensitive[token_ids]\n",
        "        is_drawn[:] = True\n",
        ("tests/test_choices.py", _AUDIT),
    ),
    Mutant(
        "TEM without γ",
        f"{_DP}/exponential_mechanism.py",
        "-0.5 * epsilon * np.minimum(distances, gamma)",
        "-0.5 * epsilon * distances",
        ("tests/test_choices.py", _AUDIT),
    ),
    Mutant(
        "γ of TEM at twice its distance",
        f"{_DP}/exponential_mechanism.py",
        "max(0.0, 2 / epsilon * math.log(inner))",
        "max(0.0, 4 / epsilon * math.log(inner))",
        (_AUDIT,),
    ),
    Mutant(
        "distances of CusText that are not scaled to their set",
        f"{_DP}/custext.py",
        " / np.where(spread > 0, spread, 1)",
        "",
        ("tests/test_choices.py", _AUDIT),
    ),
    Mutant(
        "ranks that all come alike",
        f"{_DP}/mechanisms.py",
        "    if fall * most < 1e-9:\n",
        "    if True:\n",
        ("tests/test_choices.py", _AUDIT),
    ),
    # What refutes a promise
    Mutant(
        "an audit that bounds on the runs that chose its set",
        f"{_DP}/audit/pairs.py",
        "np.isin(runs[half:], outputs)",
        "np.isin(runs[:half], outputs)",
        ("tests/test_audit_pairs.py",),
    ),
    # Against an adversary
    Mutant(
        "gradients of an adversary that are not turned round",
        "core/training/adversary.py",
        "return -ctx.weight * gradient, None",
        "return ctx.weight * gradient, None",
        ("tests/test_adversarial.py",),
    ),
    Mutant(
        "λ slows down the adversary, too",
        f"{_TRAINED}/adversarial_game.py",
        "return main + self.adversary.loss(reverse(vectors, self.weight), rows)",
        "return main + self.weight * self.adversary.loss(reverse(vectors, 1.0), rows)",
        ("tests/test_adversarial.py",),
    ),
    Mutant(
        "LEACE of vectors that are not centred",
        f"{_TRAINED}/leace.py",
        "(vectors - self.mean_) @ self.projection_.T + self.mean_",
        "vectors @ self.projection_.T",
        ("tests/test_adversarial.py",),
    ),
    Mutant(
        "a training that diverged goes on from its checkpoint",
        "core/training/watch.py",
        "            (folder / META).unlink(missing_ok=True)\n",
        "",
        ("tests/test_watch.py",),
    ),
    Mutant(
        "a trap is claimed where nothing was hidden",
        "core/studies/training/summary.py",
        "(before.value - self.promised.value) - (afterwards.value - self.read.value)",
        "self.read.value - self.promised.value",
        ("tests/test_training_summary.py",),
    ),
    Mutant(
        "a training that ran away is judged by the seeds that did not",
        "core/studies/training/adversarial_tables.py",
        " and not s.stopped]",
        "]",
        ("tests/test_training_summary.py",),
    ),
    # Under noise
    Mutant(
        "the first perturbation of a set stands for all",
        f"{_TRAINED}/under_noise/objectives.py",
        "logits.gather(1, perturbed).mean(1)",
        "logits.gather(1, perturbed)[:, 0]",
        ("tests/test_objectives.py",),
    ),
    Mutant(
        "vanilla asks for the token as it was where it is hidden",
        _MASKING,
        '        if self.objective == "denoising":\n',
        '        if self.objective != "probability":\n',
        _MASKS,
    ),
    Mutant(
        "vanilla asks for another draw than the one that stands there",
        _MASKING,
        'if self.objective == "vanilla" and is_kept.any():',
        "if False:",
        _MASKS,
    ),
    Mutant(
        "a set of perturbations that is the token over and over",
        _MASKING,
        "return side.perturbed(original, n, rng)",
        "return np.repeat(original[:, None], n, axis=1)",
        _MASKS,
    ),
    Mutant(
        "a set of perturbations that is one of them over and over",
        _MASKING,
        "return side.perturbed(original, n, rng)",
        "return np.repeat(side.perturbed(original, 1, rng), n, axis=1)",
        _MASKS,
    ),
    Mutant(
        "denoising asks for what the noise left",
        _MASKING,
        "return original[:, None].copy()",
        "return side.perturbed(original, 1, rng)",
        _MASKS,
    ),
    Mutant(
        "what a token was exchanged for is asked for",
        _MASKING,
        "self._targets(original[chosen], side, rng)",
        "self._targets(given[chosen], side, rng)",
        _MASKS,
    ),
    Mutant(
        "a resumed run draws its noise from the start",
        "core/training/watch.py",
        "        self.rng.bit_generator.state = meta\n",
        "",
        (f"{_ENDS_ALIKE}[constrained-tokens]", f"{_ENDS_ALIKE}[adaptive-denoising]"),
    ),
    Mutant(
        "a network under noise learns from what it is tested on",
        "core/studies/training/tuned_networks.py",
        '    known, held = examples.parts(**sizes, seed=cell["seed"])\n',
        '    known, held = examples.parts(**sizes, seed=cell["seed"])\n'
        "    known = np.concatenate([known, held])\n",
        ("tests/test_under_noise_leaks.py",),
    ),
    Mutant(
        "texts that stand twice are trained on and tested on",
        "core/tasks/examples.py",
        'joined = tuple("\\n".join(pair) for pair in pairs)',
        'joined = tuple(f"{i}{pair}" for i, pair in enumerate(pairs))',
        ("tests/test_under_noise_leaks.py", "tests/test_constrained.py"),
    ),
    Mutant(
        "an optimiser takes up a state of another shape",
        "core/training/checkpoint.py",
        "        if not is_fit or not all(",
        "        if not all(",
        ("tests/test_checkpoints.py",),
    ),
    # With differential privacy
    Mutant(
        "noisy steps that nobody counts",
        "core/training/private.py",
        "    optimizer.attach_step_hook("
        "ledger.accountant.get_optimizer_hook_fn(sample_rate=loop.rate))\n",
        "",
        ("tests/test_private_training.py",),
    ),
    Mutant(
        "a resumed accountant begins at nothing",
        "core/training/private.py",
        '[(float(a), float(b), int(n)) for a, b, n in meta["steps"]]',
        "[]",
        ("tests/test_private_training.py",),
    ),
    Mutant(
        "an accountant that has lost steps is believed",
        "core/training/private.py",
        "    ledger.check(sigma, loop.rate, n_steps)\n",
        "",
        ("tests/test_private_training.py",),
    ),
    Mutant(
        "the seed of the noise is left beside a private classifier",
        f"{_TRAINED}/private.py",
        "        if is_over and folder is not None:\n",
        "        if False:\n",
        ("tests/test_private_training.py",),
    ),
)
"""In the order of what they would spoil."""
