"""Answers within a text, to be marked there."""

import re

__all__ = ["spans"]


def spans(text, gold, predicted):
    """Splits a text where whole words are answers; case does not count.

    Args:
        text: str.
        gold, predicted: sequences of str.
    Returns:
        list of (part, role): the role is "gold", "predicted", "both" or "plain".
    """
    roles = {answer.lower(): "predicted" for answer in predicted if answer.strip()}
    for answer in filter(str.strip, gold):
        roles[answer.lower()] = "both" if answer.lower() in roles else "gold"
    if not roles:
        return [(text, "plain")]
    pattern = "|".join(sorted(map(re.escape, roles), key=len, reverse=True))
    parts = re.split(rf"(?<!\w)({pattern})(?!\w)", text, flags=re.IGNORECASE)
    return [(part, roles.get(part.lower(), "plain")) for part in parts if part]
