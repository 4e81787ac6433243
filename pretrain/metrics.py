"""Metrics of held-out windows."""

import numpy as np

__all__ = ["NUM_CONTRASTED", "metrics"]

NUM_CONTRASTED = 64  # Sentences among which the masked one must be identified.


def metrics(predictions, *, mlm_weight, cpc_weight, num_contrasted=NUM_CONTRASTED):
    """Losses and accuracies of both tasks.

    Masked sentences are contrasted within groups of `num_contrasted` in window order, independent
    of the batch size; the last group may be smaller.

    Args:
        predictions: iterator of dict of NumPy arrays, one per window: its features and the outputs
            of `PretrainModel`.
        mlm_weight, cpc_weight: float.
        num_contrasted: int.
    Returns:
        dict of float: "loss", "mlm_loss", "mlm_accuracy" (both only with masked tokens) and, with
        CPC, "cpc_loss", "cpc_accuracy" and "cpc_chance", the accuracy of guessing.
    Raises:
        ValueError: if no window has a masked token or sentence.
    """
    sums, num_tokens = np.zeros(2), 0
    cpc_sums, num_sentences, group, has_cpc = np.zeros(3), 0, [], False
    for window in predictions:
        real = window["mlm_mask"] > 0
        is_right = window["mlm_token_ids"] == window["mlm_labels"]
        sums += [window["mlm_loss"][real].sum(dtype=np.float64), is_right[real].sum()]
        num_tokens += real.sum()
        if "cpc_targets" not in window:
            continue
        has_cpc = True
        for index in np.flatnonzero(window["cpc_mask"]):
            group.append((window["cpc_predictions"][index], window["cpc_targets"][index]))
            if len(group) == num_contrasted:
                cpc_sums += _contrast(group)
                num_sentences += len(group)
                group = []
    if group:
        cpc_sums += _contrast(group)
        num_sentences += len(group)
    if not (num_tokens or num_sentences):
        raise ValueError("The windows to evaluate on have no masked token and no masked sentence.")
    result = {"loss": 0.0}
    if num_tokens:
        mlm_loss, mlm_accuracy = sums / num_tokens
        result.update(loss=mlm_weight * mlm_loss, mlm_loss=mlm_loss, mlm_accuracy=mlm_accuracy)
    if has_cpc:
        cpc_loss, cpc_accuracy, chance = cpc_sums / max(num_sentences, 1)
        result["loss"] += cpc_weight * cpc_loss
        result.update(cpc_loss=cpc_loss, cpc_accuracy=cpc_accuracy, cpc_chance=chance)
    return {name: float(value) for name, value in result.items()}


def _contrast(group):
    """Sums over a group: cross entropy, correct choices, and expected correct guesses."""
    predictions, targets = (np.stack(rows).astype(np.float64) for rows in zip(*group, strict=True))
    logits = predictions @ targets.T
    highest = logits.max(axis=1)
    log_sums = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
    is_right = logits.argmax(axis=1) == np.arange(len(group))
    return np.array([(log_sums - np.diag(logits)).sum(), is_right.sum(), 1.0])
