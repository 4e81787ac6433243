"""Defines the flags of options."""

from absl import flags

from etcmodel.options import fields

__all__ = ["define_alias", "define_flags"]

flags.disclaim_key_flags()  # So that --help shows the flags as those of the calling program.

_DEFINERS = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
    tuple: flags.DEFINE_list,
}


def define_flags(options_class, flag_values=flags.FLAGS, defaults=None):
    """Defines a flag for every option of a class.

    Args:
        options_class: dataclass.
        flag_values: `flags.FlagValues` to define them in.
        defaults: dict from an option's name to a default that replaces that of its field.
    """
    for field in fields.option_fields(options_class):
        _define(field, (defaults or {}).get(field.name, field.default), flag_values)


def _define(field, default, flag_values):
    name, metadata = field.name, field.metadata
    help_text, arguments = metadata["help_text"], {"flag_values": flag_values}
    if metadata["is_needed"]:
        help_text += " Must be given."
    elif default is None and "None" not in help_text:
        help_text += " No default."  # For others, --help shows the default itself.
    kind = fields.kind(field)[0]
    for bound in ("lower_bound", "upper_bound"):
        if metadata[bound] is not None and kind is not tuple:  # absl has no bounds for list items.
            arguments[bound] = metadata[bound]
    if isinstance(default, tuple):
        default = list(map(str, default))
    if metadata["choices"] and (kind is not tuple or metadata["is_repeated"]):
        define = flags.DEFINE_multi_enum if kind is tuple else flags.DEFINE_enum
        define(name, default, list(metadata["choices"]), help_text, **arguments)
        return
    if metadata["is_repeated"]:
        parser, serializer = flags.ListParser(), flags.ListSerializer(",")
        flag = _RepeatedListFlag(parser, serializer, name, default, help_text)
        flags.DEFINE_flag(flag, flag_values)
        return
    _DEFINERS[kind](name, default, help_text, **arguments)


def define_alias(alias, flag, flag_values):
    """Defines a flag that accepts the same values as another flag and has no default."""
    help_text = f"Alias of --{flag.name}."
    if flag.boolean:
        flags.DEFINE_bool(alias, None, help_text, flag_values=flag_values)
        return
    flags.DEFINE(
        flag.parser, alias, None, help_text, flag_values=flag_values, serializer=flag.serializer
    )


class _RepeatedListFlag(flags.Flag):
    """A flag of comma-separated values that may be repeated, as absl's multi flags may."""

    def parse(self, argument):
        before = self.value if self.present else []
        super().parse(argument)
        self.value = before + self.value
