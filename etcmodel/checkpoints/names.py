"""The names that variables have in the authors' checkpoints."""

__all__ = ["release_names"]


def release_names(model):
    """Maps names in the release's checkpoints to the variables of a model.

    A name is the path of layer names down from the model, with two exceptions that the release
    makes: the name of a task model itself is left out, and so is the encoder's before absolute
    position tables.

    Args:
        model: a built Keras layer or model.
    Returns:
        dict of name (without ":0") to variable, in the order of creation.
    """
    prefix = f"{model.name}/" if _is_encoder(model) else ""
    names = {}
    _collect(model, prefix, names)
    return names


def _is_encoder(layer):
    return hasattr(layer, "get_token_embedding_table")


def _collect(layer, prefix, names):
    for variable in layer._trainable_weights + layer._non_trainable_weights:
        names.setdefault(prefix + variable.name.split(":")[0].split("/")[-1], variable)
    for child in layer._flatten_layers(include_self=False, recursive=False):
        is_position_table = child.name.startswith("position_emb_lookup_")
        child_prefix = "" if is_position_table else prefix
        _collect(child, f"{child_prefix}{child.name}/", names)
