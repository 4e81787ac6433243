"""Token ids, or embeddings in their place, as a layer's first argument."""

__all__ = ["OptionalInput", "embed"]


class OptionalInput:
    """A mixin: a layer's first argument, which Keras requires, may be omitted, or a dict of all."""

    def __call__(self, first=None, *args, **kwargs):
        if hasattr(first, "items"):
            return self(**{**first, **kwargs})
        name = self._call_spec.arg_names[0]
        return super().__call__(kwargs.pop(name, first), *args, **kwargs)


def embed(token_embedding, ids, embeddings):
    """Returns the embeddings of ids, or the given embeddings.

    Raises:
        ValueError: unless exactly one of the two is given.
    """
    if (ids is None) == (embeddings is None):
        raise ValueError("Give ids, or embeddings in their place, and not both.")
    return token_embedding(ids) if embeddings is None else embeddings
