"""Flags of the options of a program, and what is given for them: in flags, by aliases, in files."""

import itertools
import sys
from collections.abc import Mapping

from absl import app, flags

from etcmodel import program_end
from etcmodel.options import config_files, fields, program_help
from etcmodel.options.flag_definitions import define_alias, define_flags
from etcmodel.shown_values import as_flag, shortened

__all__ = ["ProgramFlags", "Values", "run_main", "run_program", "values_from_flags"]

flags.disclaim_key_flags()  # The flags are those of the program that calls, as --help shows them.


class ProgramFlags:
    """All flags that are options of a program.

    A value comes from the first of these that gives one: the command line (under the option's name
    or an alias), --override, --config (the last file that has it), the default.

    Args:
        sections: dict of a section's name in YAML files to its class of options; no two have an
            option of the same name.
        flag_values: `flags.FlagValues` to define and read.
        aliases: dict of a further name to that of an option, beside the aliases of the classes.
        defaults: dict of an option's name to another default than that of its field.
    Attributes:
        groups: dict of a flag to the group under which --help shows it. Flags that are defined
            beside the options may be added.
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
        """What --help prints: str.

        Args:
            argv: list of str. The program's name and its arguments.
        """
        mode = "run_mode" in self.groups and self._flags["run_mode"].default
        needed = self.needed(program_help.mode_of(argv[1:], mode))
        return program_help.text(self._flags, self.groups, needed, *program_help.of_main(argv))

    def needed(self, mode=None):
        """The flags that are needed, with a value that each could have: dict of str to str.

        Args:
            mode: str. A value of --run_mode, if there is this flag.
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
        """Sets the options whose aliases are given.

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
        """Sets the options that --override and --config give, and no flag does.

        Raises:
            ValueError: in one line that names the file and the key, for a file that cannot be read,
                an option that does not exist, or a value that is none of it.
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
        """Replaces the defaults of options by other ones; what is given stays.

        Args:
            defaults: dict of an option's name to the value.
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
                value = [value]  # An item of an option that is repeated for each.
            fields.check_value(field, value)
        except ValueError as error:
            raise ValueError(f"{source}: {shortened(str(error), 400)}") from error
        return {field.name: value}

    def values(self, section):
        """dict of name to value of the options of a section, as they are given or by default."""
        return values_from_flags(self._sections[section], self._flags)


def values_from_flags(
    options_class, flag_values=flags.FLAGS, *, only_given=False, roles=fields.ROLES
):
    """The parsed flags.

    Args:
        options_class: dataclass.
        flag_values: parsed `flags.FlagValues`.
        only_given: bool. Leave out flags that nothing but the default gives a value.
        roles: tuple of str. Leave out options of other roles.
    Returns:
        dict of field name to value; '' becomes None where that is the default.
    Raises:
        ValueError: if an item of a list is no integer where it must be one.

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
    # As in the release, '' stands for no file or name.
    return None if field.default is None and value == "" else value


def run_main(main, *, program, known_only=False, has_words=False):
    """Parses the flags and runs a program; prints wrong flags as one line and exits with 1.

    Args:
        main: function of the remaining arguments.
        program: `ProgramFlags`, which are defined.
        known_only: bool. Leave flags that this program does not have to `main`, with their values
            (`--flag value`).
        has_words: bool. Whether words without dashes may be among the flags.

    >>> import subprocess, sys
    >>> program = "from etcmodel import options as o; p = o.ProgramFlags({}); p.define();"
    >>> program += "o.run_main(print, program=p, known_only=True)"
    >>> command = [sys.executable, "-c", program, "--color=red"]
    >>> subprocess.run(command, capture_output=True, text=True).stdout
    "['-c', '--color=red']\\n"
    """
    # Else nothing would be read behind such a value or word.
    flags.FLAGS.set_gnu_getopt(known_only or has_words)

    def parse(argv):
        if program_help.is_asked_for(argv[1:]):
            print(program.help_text(argv))
            sys.exit(0)
        try:
            return flags.FLAGS(argv, known_only=known_only)
        except flags.Error as error:
            problem = str(error)
        except RecursionError:  # absl looks for flags of a similar name, letter by letter.
            problem = f"one of these is no flag: {' '.join(argv[1:])}"
        print(f"error: {shortened(problem, 1000)}", file=sys.stderr)
        sys.exit(1)

    app.run(main, flags_parser=parse)


def run_program(options_class, main, *, section="options", has_others_flags=False, has_words=False):
    """Runs a program whose flags are the options of one class; prints errors as one line.

    Args:
        options_class: subclass of `Options`.
        main: function of an instance of it.
        section: str. Its name in YAML files.
        has_others_flags: bool. Whether `main` also takes what follows `--`, a list of str.
        has_words: bool. Whether that list also has words without dashes, from among the flags.

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
    """Parsed flags that can be set as if they had been given.

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
        """Whether the flag has a value that is not its default."""
        return bool(self._flags[name].present)

    def text(self, name):
        """The value as on a command line, without the middle of what is long."""
        return as_flag(self[name])

    def set(self, name, value, *, because_of, origin=None):
        """Sets a flag because of another one; refuses to change what was given.

        Args:
            name: str. The flag.
            value: what its parser returns.
            because_of: str. What stands for it.
            origin: str. The flag by which it was given. None: itself.
        Raises:
            ValueError: if it was given another value.
        """
        flag = self._flags[name]
        if flag.present and flag.value != value:
            given = f"--{origin or name}={self.text(name)}"
            raise ValueError(f"{because_of} contradicts {given}. Give one of them.")
        flag.value = value
        flag.present += 1
        flag.using_default_value = False

    def translate(self, old, name, value):
        """Sets a flag and returns the line that tells so; `old` is what stood for it."""
        self.set(name, value, because_of=old)
        return f"{old} is read as --{name}={self.text(name)}."

    def forget(self, name):
        """As if the flag had not been given."""
        self._flags[name].unparse()
