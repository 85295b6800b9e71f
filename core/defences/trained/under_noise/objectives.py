"""The losses of privacy-adaptive pretraining (Qu et al. 2021, Eqs. 5 to 7)."""

from __future__ import annotations

from torch import Tensor


def token_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    """Compute the mean cross-entropy of masked positions with one target token each.

    Implements Qu et al. (2021), Eq. 5 where `tokens` are the perturbed ones (vanilla MLM), and
    Eq. 7 where they are the original ones (denoising MLM):
    −Σ_w 1[w = w_t] log(e^{z_w} / Σ_w' e^{z_w'}).
    Differs from the paper: nothing.

    Parameters
    ----------
    logits : float tensor (m, |V|)
    tokens : int64 tensor (m, 1)
    """
    return probability_loss(logits, tokens)


def probability_loss(logits: Tensor, perturbed: Tensor) -> Tensor:
    """Compute the mean cross-entropy of masked positions over several target tokens each.

    Implements Qu et al. (2021), Eq. 6: −Σ_{w∈C} (n_w / |C|) log(e^{z_w} / Σ_w' e^{z_w'}), n_w being
    how often w is in C. As Σ n_w = |C|, this is log Σ_w' e^{z_w'} less the mean logit over C.
    Differs from the paper: nothing.

    Parameters
    ----------
    logits : float tensor (m, |V|)
    perturbed : int64 tensor (m, |C|)
        The perturbations of each position; what comes twice counts twice.
    """
    logits = logits.float()
    found: Tensor = (logits.logsumexp(1) - logits.gather(1, perturbed).mean(1)).mean()
    return found
