"""Finds the answers to mark, in a text or among candidates."""

import re

__all__ = ["roles", "spans"]


def roles(gold, predicted):
    """The role of each answer: dict from the lower-cased answer to "gold", "predicted" or "both".

    Args:
        gold, predicted: sequences of str.
    """
    found = {answer.lower(): "predicted" for answer in predicted if answer.strip()}
    for answer in filter(str.strip, gold):
        found[answer.lower()] = "both" if answer.lower() in found else "gold"
    return found


def spans(text, gold, predicted):
    """Splits a text at answers that occur as whole words, ignoring case.

    Args:
        text: str.
        gold, predicted: as in `roles`.
    Returns:
        list of (part, role): the role is "gold", "predicted", "both" or "plain".
    """
    found = roles(gold, predicted)
    if not found:
        return [(text, "plain")]
    pattern = "|".join(sorted(map(re.escape, found), key=len, reverse=True))
    parts = re.split(rf"(?<!\w)({pattern})(?!\w)", text, flags=re.IGNORECASE)
    return [(part, found.get(part.lower(), "plain")) for part in parts if part]
