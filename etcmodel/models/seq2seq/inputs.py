"""Ids, or embeddings in their place."""

__all__ = ["OptionalInput", "embed"]


class OptionalInput:
    """Lets the first argument of a layer, which Keras wants, be left out, or be a dict of all."""

    def __call__(self, first=None, *args, **kwargs):
        if hasattr(first, "items"):
            return self(**{**first, **kwargs})
        name = self._call_spec.arg_names[0]
        return super().__call__(kwargs.pop(name, first), *args, **kwargs)


def embed(token_embedding, ids, embeddings):
    """Embeddings of ids, or those that are given.

    Raises:
        ValueError: unless just one of the two is given.
    """
    if (ids is None) == (embeddings is None):
        raise ValueError("Give ids, or embeddings in their place, and not both.")
    return token_embedding(ids) if embeddings is None else embeddings
