"""The --help text of a program: an example, and its flags in groups."""

import re
import shlex
import sys
import textwrap

# In the order of --help; flags in the group `HIDDEN` are listed only by --helpfull.
NEEDED, OTHER, COMPATIBILITY, HIDDEN = "needed", "other", "compatibility", "without effect"
GROUPS = (
    NEEDED,
    *("data", "model", "training", "evaluation", "devices", "serving"),
    OTHER,
    COMPATIBILITY,
)
_TITLES = {COMPATIBILITY: "compatibility (other names, and flags of the authors' release)"}
_WORDS = {f"{dashes}{word}" for dashes in ("-", "--") for word in ("help", "helpshort", "?")}
_COLUMNS, _LONGEST_COMMAND = 80, 96
_EXAMPLE = re.compile(r"(?: .*\betcmodel\b.*)(?:\n .*)*")


def is_asked_for(arguments):
    """Whether one of the arguments, a list of str, is --help or an alias of it."""
    return any(argument in _WORDS for argument in arguments[: _end(arguments)])


def mode_of(arguments, default):
    """The value of --run_mode in the arguments, a list of str."""
    given = [re.fullmatch(r"--?run_mode=(.*)", x) for x in arguments[: _end(arguments)]]
    return next((found[1] for found in reversed(given) if found), default)


def _end(arguments):
    return arguments.index("--") if "--" in arguments else len(arguments)


def text(flag_values, groups, examples, doc, program):
    """The help of a program: str.

    Args:
        flag_values: `flags.FlagValues`.
        groups: dict from a flag to one of `GROUPS`, or `HIDDEN`.
        examples: dict from each needed flag to an example value.
        doc: str. The program's docstring, which may contain example commands.
        program: str. The program's name, such as "etcmodel train hotpotqa".
    """
    summary, *rest = doc.strip().split("\n\n")
    example = next(filter(_EXAMPLE.fullmatch, rest), None)
    if example is None:
        flags = [shlex.quote(f"--{name}={value}") for name, value in examples.items()]
        example = " ".join([program, *flags])
    else:
        rest.remove(example)
    commands = map(_in_lines, textwrap.dedent(example).split("\n"))
    parts = [summary, textwrap.indent("\n".join(commands), "  "), *rest]
    of_groups = {group: [] for group in GROUPS}
    for name, group in groups.items():
        if name not in examples and group != HIDDEN:
            of_groups[group].append(name)
    of_groups = {group: sorted(names) for group, names in of_groups.items() if names}
    titles = dict(_TITLES)
    if not of_groups.keys() - {OTHER, COMPATIBILITY}:
        titles[OTHER] = "flags"
    of_groups = {NEEDED: [*examples]} | of_groups if examples else of_groups
    for group, names in of_groups.items():
        lines = [_in_lines_of_help(flag_values[name]) for name in names]
        parts.append("\n".join([f"{titles.get(group, group)}:", *lines]))
    parts.append(
        "--helpfull lists all flags, including those of logging and those without effect here."
    )
    return "\n\n".join(parts)


def _in_lines(command):
    """A command; a long one is split into lines that end with a backslash."""
    if len(command) <= _LONGEST_COMMAND:
        return command
    lines = textwrap.wrap(
        " ".join(command.split()),
        _COLUMNS - 4,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return " \\\n".join(lines)


def _in_lines_of_help(flag):
    default = flag.default_as_str and f"default: {flag.default_as_str}"
    notes = "; ".join(filter(None, [default, flag.parser.syntactic_help]))
    line = f"--{'[no]' * flag.boolean}{flag.name}: {flag.help}" + f" ({notes})" * bool(notes)
    return textwrap.fill(
        " ".join(line.split()),
        _COLUMNS,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def of_main(argv):
    """The docstring of the running program, and the name it was called by: (str, str).

    Args:
        argv: list of str. For the command `etcmodel`, the first item is the command with its words.
    """
    main = sys.modules["__main__"]
    doc, name = (main.__doc__ or "").strip(), main.__spec__.name if main.__spec__ else ""
    called = f"python -m {name}" if name else f"python {argv[0]}"
    if argv[0].startswith("etcmodel "):
        return doc.replace(called, argv[0]), argv[0]
    return doc, called
