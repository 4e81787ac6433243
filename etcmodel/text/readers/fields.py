"""Checks the fields of users' data and files: errors name the field in one line."""


def fail(where, wish, value):
    """Raises ValueError: what `where` must be, and what was received."""
    received = repr(value)
    shown = received if len(received) <= 80 else f"{received[:77]}..."
    raise ValueError(f"`{where}` must be {wish}. Received: {type(value).__name__} {shown}")


def given(mapping, name, default):
    """Returns the value of a field; the default if it is missing or None (JSON's null)."""
    value = mapping.get(name)
    return default if value is None else value


def string(value, where):
    """Returns `value` as str; bytes are decoded as UTF-8."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if not isinstance(value, str):
        fail(where, "a string", value)
    return value


def decoded(value, where):
    """Decodes bytes; raises ValueError with `where` and the position if they are not UTF-8."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: invalid UTF-8 at byte {error.start + 1}") from None


def sequence(value, where, wish="a list"):
    if not isinstance(value, (list, tuple)):
        fail(where, wish, value)
    return value


def mapping(value, where, wish="an object (dict) of fields"):
    if not isinstance(value, dict):
        fail(where, wish, value)
    return value


def known_fields(value, where, known):
    """Checks that the keys of a dict are among `known`."""
    unknown = [key for key in value if key not in known]
    if unknown:
        raise ValueError(
            f"`{where}` has unknown fields {unknown}. There are: {sorted(known)}; "
            "what else an example holds goes into `extra`."
        )
