"""The flags of a program's options, and their values from flags, aliases and files."""

import itertools
import re
import sys
from collections.abc import Mapping

from absl import app, flags

from etcmodel import program_end
from etcmodel.options import config_files, fields, program_help
from etcmodel.shown_values import as_flag, shortened

flags.disclaim_key_flags()  # So that --help shows the flags as those of the calling program.

_NOT_BOOLEAN = re.compile(r"\('Non-boolean argument.*\)$", re.DOTALL)  # As absl writes a tuple.
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


class ProgramFlags:
    """All flags of a program that are options.

    A value is taken from the first of these sources that has one: the command line (under the
    option's name or an alias), --override, --config (the last file that has it), the default.

    Args:
        sections: dict from a section's name in YAML files to its class of options; option names
            must be unique.
        flag_values: `flags.FlagValues` to define and read.
        aliases: dict from an alias to the name of an option, in addition to the aliases of the
            classes.
        defaults: dict from an option's name to a default that replaces that of its field.
    Attributes:
        groups: dict from a flag to the group in which --help lists it. Flags that are not options
            may be added.
    Raises:
        ValueError: if `aliases` or `defaults` name no option.

    >>> from absl import flags
    >>> from etcmodel import options
    >>> program = options.ProgramFlags({"lengths": options.LengthOptions}, flags.FlagValues())
    >>> program.groups["long_seq_length"]
    'data'
    """

    def __init__(self, sections, flag_values=flags.FLAGS, *, aliases=None, defaults=None):
        self._sections, self._flags = sections, flag_values
        self._defaults = defaults or {}
        own = (fields.aliases_of(options_class).items() for options_class in sections.values())
        self.aliases = dict(itertools.chain(*own), **(aliases or {}))
        names = {field.name for field in self._fields()}
        for argument, given in (("aliases", self.aliases.values()), ("defaults", self._defaults)):
            if unknown := sorted(set(given) - names):
                raise ValueError(f"`{argument}` must name options. Received: {unknown}")
        self.groups = {field.name: fields.group_of(field) for field in self._fields()}
        self.groups |= dict.fromkeys(("config", "override"), program_help.OTHER)
        self.groups |= dict.fromkeys(self.aliases, program_help.COMPATIBILITY)

    def help_text(self, argv):
        """The text that --help prints: str.

        Args:
            argv: list of str. The program's name and its arguments.
        """
        mode = "run_mode" in self.groups and self._flags["run_mode"].default
        needed = self.needed(program_help.mode_of(argv[1:], mode))
        return program_help.text(self._flags, self.groups, needed, *program_help.of_main(argv))

    def needed(self, mode=None):
        """The needed flags with example values: dict of str to str.

        Args:
            mode: str. A value of --run_mode, if the program has this flag.
        """
        known = {field.name: field for field in self._fields()}
        names, not_needed = [], set()
        for options_class in self._sections.values():
            needed = options_class.needed
            names += needed.get(mode, ()) if isinstance(needed, Mapping) else needed
            not_needed |= set(options_class.not_needed)
        names += [name for name, field in known.items() if field.metadata["is_needed"]]
        return {
            name: known[name].metadata["example"] or name.upper()
            for name in names
            if name in known and name not in not_needed
        }

    def _fields(self):
        return itertools.chain(*map(fields.option_fields, self._sections.values()))

    def define(self):
        """Defines a flag for each option and alias, and --config and --override."""
        for options_class in self._sections.values():
            define_flags(options_class, self._flags, self._defaults)
        for alias, name in self.aliases.items():
            define_alias(alias, self._flags[name], self._flags)
        flags.DEFINE_multi_string(
            "config",
            [],
            "YAML file of options, by their names, alone or in their sections: "
            f"{', '.join(self._sections)}. Of several files the last wins, and a flag over all.",
            flag_values=self._flags,
        )
        flags.DEFINE_multi_string(
            "override",
            [],
            "An option as name=value or section.name=value; wins over the files of --config.",
            flag_values=self._flags,
        )

    def resolve_aliases(self):
        """Sets the options whose aliases are given on the command line.

        Raises:
            ValueError: if an option and its aliases have different values; names both flags.
        """
        values, origins = Values(self._flags), {}
        for alias, name in self.aliases.items():
            if values.is_given(alias):
                given = f"--{alias}={values.text(alias)}"
                values.set(name, values[alias], because_of=given, origin=origins.get(name))
                origins[name] = alias

    def read_config(self):
        """Sets the options that --override and --config give, unless a flag gives them.

        Raises:
            ValueError: in one line that names the file and the key, for an unreadable file, an
                unknown option, or an invalid value.
        """
        found = {}
        for path in self._flags["config"].value:
            found |= config_files.load(path, self._sections, self.aliases)
        for text in self._flags["override"].value:
            found |= self._override(text)
        for name, value in found.items():
            flag = self._flags[name]
            if not flag.present:
                flag.value = list(value) if isinstance(value, tuple) else value
                flag.present += 1
                flag.using_default_value = False

    def set_defaults(self, defaults):
        """Replaces the defaults of options; given values stay.

        Args:
            defaults: dict from an option's name to the value.
        """
        for name, value in defaults.items():
            if not self._flags[name].present:
                self._flags[name].value = value

    def _override(self, text):
        source = f"--override={shortened(text, 200)}"
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{source}: give name=value.")
        field = config_files.find_option(key.strip(), self._sections, self.aliases, source)
        try:
            value = self._flags[field.name].parser.parse(value)
            if fields.kind(field)[0] is tuple and isinstance(value, str):
                value = [value]  # One item of a repeated option.
            fields.check_value(field, value)
        except ValueError as error:
            raise ValueError(f"{source}: {shortened(str(error), 400)}") from error
        return {field.name: value}

    def values(self, section):
        """The given or default values of a section's options: dict from name to value."""
        return values_from_flags(self._sections[section], self._flags)


def values_from_flags(
    options_class, flag_values=flags.FLAGS, *, only_given=False, roles=fields.ROLES
):
    """Reads the values of parsed flags.

    Args:
        options_class: dataclass.
        flag_values: parsed `flags.FlagValues`.
        only_given: bool. Leave out flags that have only their default.
        roles: tuple of str. Leave out options with other roles.
    Returns:
        dict of field name to value; '' becomes None where that is the default.
    Raises:
        ValueError: if an item of a list of integers is not an integer.

    >>> from absl import flags
    >>> from etcmodel import options
    >>> given = flags.FlagValues()
    >>> options.ProgramFlags({"lengths": options.LengthOptions}, given).define()
    >>> given(["program"]), options.values_from_flags(options.LengthOptions, given)
    (['program'], {'long_seq_length': 4096, 'global_seq_length': 230})
    """
    values = {}
    for field in fields.option_fields(options_class):
        flag = flag_values[field.name]
        if field.metadata["role"] in roles and (flag.present or not only_given):
            values[field.name] = _value(field, flag.value)
    return values


def _value(field, value):
    kind, item_type = fields.kind(field)
    if kind is tuple and value is not None:
        try:
            return tuple(map(item_type, value))
        except ValueError as error:
            given = shortened(",".join(map(str, value)), 200)
            raise ValueError(f"--{field.name} must be integers. Received: {given}") from error
    # As in the release, '' means no file or name.
    return None if field.default is None and value == "" else value


def run_main(main, *, program, known_only=False, has_words=False):
    """Parses the flags and runs a program; prints flag errors in one line and exits with 1.

    Args:
        main: function that takes the remaining arguments.
        program: `ProgramFlags`, already defined.
        known_only: bool. Pass flags that this program does not have on to `main`, with their values
            (`--flag value`).
        has_words: bool. Whether words without dashes are allowed among the flags.

    >>> import subprocess, sys
    >>> program = "from etcmodel import options as o; p = o.ProgramFlags({}); p.define();"
    >>> program += "o.run_main(print, program=p, known_only=True)"
    >>> command = [sys.executable, "-c", program, "--color=red"]
    >>> subprocess.run(command, capture_output=True, text=True).stdout
    "['-c', '--color=red']\\n"
    """
    # Otherwise, parsing would stop at such a value or word.
    flags.FLAGS.set_gnu_getopt(known_only or has_words)

    def parse(argv):
        if program_help.is_asked_for(argv[1:]):
            print(program.help_text(argv))
            sys.exit(0)
        try:
            return flags.FLAGS(argv, known_only=known_only)
        except flags.Error as error:
            problem = _NOT_BOOLEAN.sub("must be true or false", str(error))
        except RecursionError:  # absl searches for similar flag names, letter by letter.
            problem = f"one of these is no flag: {' '.join(argv[1:])}"
        print(f"error: {shortened(problem, 1000)}", file=sys.stderr)
        sys.exit(1)

    app.run(main, flags_parser=parse)


def run_program(options_class, main, *, section="options", has_others_flags=False, has_words=False):
    """Runs a program whose flags are the options of one class; prints errors in one line.

    Args:
        options_class: subclass of `Options`.
        main: function that takes an instance of the class.
        section: str. The section's name in YAML files.
        has_others_flags: bool. Whether `main` also takes the arguments after `--`, a list of str.
        has_words: bool. Whether that list also includes words without dashes from among the flags.

    >>> import subprocess, sys
    >>> program = "from etcmodel import options; options.run_program(options.LengthOptions, print)"
    >>> command = [sys.executable, "-c", program, "--long_seq_length=512"]
    >>> subprocess.run(command, capture_output=True, text=True).stdout
    'LengthOptions(long_seq_length=512, global_seq_length=230)\\n'
    """
    program = ProgramFlags({section: options_class})
    program.define()

    def run(argv):
        with program_end.ends_in_one_line():
            program.resolve_aliases()
            program.read_config()
            others = [argv[1:]] if has_others_flags else []
            main(options_class(**program.values(section)), *others)

    run_main(run, program=program, has_words=has_words)


class Values:
    """Parsed flags that can be set as if they had been given on the command line.

    Args:
        flag_values: parsed `flags.FlagValues`.

    >>> from absl import flags
    >>> from etcmodel import options
    >>> given = flags.FlagValues()
    >>> options.ProgramFlags({"lengths": options.LengthOptions}, given).define()
    >>> given(["program", "--long_seq_length=512"]), options.Values(given).text("long_seq_length")
    (['program'], '512')
    """

    def __init__(self, flag_values):
        self._flags = flag_values

    def __getitem__(self, name):
        return self._flags[name].value

    def is_given(self, name):
        """Whether the flag was given or set, rather than left at its default."""
        return bool(self._flags[name].present)

    def text(self, name):
        """The value as on a command line; long values are shortened in the middle."""
        return as_flag(self[name])

    def set(self, name, value, *, because_of, origin=None):
        """Sets a flag that another flag implies; does not overwrite a given value.

        Args:
            name: str. The flag.
            value: the value that the flag's parser returns.
            because_of: str. The text that implies it, for the log.
            origin: str. The flag by which it was given. None: the flag itself.
        Raises:
            ValueError: if the flag was given another value.
        """
        flag = self._flags[name]
        if flag.present and flag.value != value:
            given = f"--{origin or name}={self.text(name)}"
            raise ValueError(f"{because_of} contradicts {given}. Give one of them.")
        flag.value = value
        flag.present += 1
        flag.using_default_value = False

    def translate(self, old, name, value):
        """Sets a flag and returns a line that reports it; `old` is the text that implied it."""
        self.set(name, value, because_of=old)
        return f"{old} is read as --{name}={self.text(name)}."

    def forget(self, name):
        """Resets the flag as if it had not been given."""
        self._flags[name].unparse()
