"""Pairs the variables of a model with those of a checkpoint, by name."""

import tensorflow as tf

__all__ = ["get_assignment_map_from_checkpoint"]


def get_assignment_map_from_checkpoint(
    variables, ckpt_path, variable_scope="", ckpt_variable_scope=""
):
    """Pairs variables with those of the same name in a checkpoint, relative to two scopes.

    `tf.train.load_variable(ckpt_path, name)` reads the value to assign. To load whole encoders,
    with a report of what was found, see `etcmodel.checkpoints`.

    Args:
        variables: sequence of tf.Variable.
        ckpt_path: str. Prefix of a checkpoint whose variables have names (TF1's format).
        variable_scope: str, empty or ending with "/". Variables outside this scope are left out.
        ckpt_variable_scope: str. The same for the variables of the checkpoint.
    Returns:
        dict of name in the checkpoint to variable, for variables that are in both.
    Raises:
        ValueError: if a scope does not end with "/", or there is no such checkpoint.

    >>> from etcmodel import checkpoints
    >>> from etcmodel.models import input_utils
    >>> path, _ = checkpoints.convert("my_model", "released", "released")
    >>> weights = etcmodel.from_pretrained("my_model", as_class=etcmodel.EtcModel).weights
    >>> len(input_utils.get_assignment_map_from_checkpoint(weights, path)) == len(weights)
    True
    """
    scopes = {"variable_scope": variable_scope, "ckpt_variable_scope": ckpt_variable_scope}
    for argument, scope in scopes.items():
        if scope and not scope.endswith("/"):
            raise ValueError(f'`{argument}` must end with "/". Received: {scope!r}')
    try:
        in_checkpoint = [name for name, _ in tf.train.list_variables(ckpt_path)]
    except (tf.errors.NotFoundError, tf.errors.DataLossError, ValueError) as error:
        raise ValueError(f"There is no checkpoint {str(ckpt_path)!r}: {error}") from None
    named = ((variable.name.removesuffix(":0"), variable) for variable in variables)
    by_name = {
        name.removeprefix(variable_scope): variable
        for name, variable in named
        if name.startswith(variable_scope)
    }
    return {
        name: by_name[name.removeprefix(ckpt_variable_scope)]
        for name in in_checkpoint
        if name.startswith(ckpt_variable_scope)
        and name.removeprefix(ckpt_variable_scope) in by_name
    }
