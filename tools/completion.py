"""Prints a script for tab completion of the commands of `etcmodel` and their flags in a shell.

    eval "$(etcmodel completion bash)"                 # in ~/.bashrc
    eval "$(etcmodel completion zsh)"                  # in ~/.zshrc, after compinit
    etcmodel completion fish | source                  # in ~/.config/fish/config.fish

The script contains the commands and data sets; flags are read from the programs, once per shell.
"""

import dataclasses

from etcmodel.cli.commands import COMMANDS
from etcmodel.options import Options, option, run_program

__all__ = ["CompletionOptions", "script"]

# From a program's help a line for each flag, "--flag a|b|c" with what its values may be, or
# "--flag[no] ". Help breaks its lines, also within words.
_FLAGS = r"""awk '/^  --/ { if (x) print x; x = $0; next } /^    / { x = x substr($0, 5); next }
            { if (x) print x; x = "" } END { if (x) print x }' |
        sed -n 's/^  --\(\[no\]\)\{0,1\}\([a-z_0-9]*\): *\(<\([^>]*\)>\)\{0,1\}.*/--\2\1 \4/p'"""
_AS_WORDS = r"""sed 's/\[no\] .*//; s/ .*/=/'"""

_BASH = r"""
declare -gA _etcmodel_known
_etcmodel_flags() {  # Sets _etcmodel_told: of a command and a name, a flag and its choices a line.
    local key="$*"
    if [[ -z ${_etcmodel_known[$key]+x} ]]; then
        _etcmodel_known[$key]=$(etcmodel "$@" --help 2>/dev/null | @FLAGS@)
    fi
    _etcmodel_told=${_etcmodel_known[$key]}
}
_etcmodel() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} flag= names= line
    local -a words=("${COMP_WORDS[1]}")
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        mapfile -t COMPREPLY < <(compgen -W "@COMMANDS@" -- "$current")
        return
    fi
    case ${COMP_WORDS[1]} in
@CASES@
    esac
    if (( COMP_CWORD == 2 )) && [[ $names && $current != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$names" -- "$current")
        return
    fi
    [[ ${COMP_WORDS[2]} && ${COMP_WORDS[2]} != -* ]] && words+=("${COMP_WORDS[2]}")
    if [[ $current == = ]]; then
        flag=$previous current=
    elif [[ $previous == = ]]; then
        flag=${COMP_WORDS[COMP_CWORD-2]}
    fi
    if [[ $flag ]]; then  # Its value: one of its choices, or else a file.
        _etcmodel_flags "${words[@]}"
        line=$(sed -n "s/^$flag //p" <<< "$_etcmodel_told")
        if [[ $line ]]; then
            mapfile -t COMPREPLY < <(compgen -W "${line//|/ }" -- "$current")
        else
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
    elif [[ $current == -* ]]; then
        compopt -o nospace 2>/dev/null
        _etcmodel_flags "${words[@]}"
        mapfile -t COMPREPLY < <(compgen -W "$(@AS_WORDS@ <<< "$_etcmodel_told")" -- "$current")
    fi
}
complete -F _etcmodel etcmodel
"""

_ZSH = r"""
typeset -gA _etcmodel_known
_etcmodel() {
    local names= key
    local -a flags asked
    if (( CURRENT == 2 )); then
        compadd -- @COMMANDS@
        return
    fi
    case ${words[2]} in
@CASES@
    esac
    if (( CURRENT == 3 )) && [[ -n $names && $PREFIX != -* ]]; then
        compadd -- ${=names}
        return
    fi
    if [[ $PREFIX == --*=* ]]; then
        compset -P '*='
        _files
        return
    fi
    asked=(${words[2]})
    (( CURRENT > 3 )) && [[ ${words[3]} != -* ]] && asked+=(${words[3]})
    key="$asked"
    if (( ! ${+_etcmodel_known[$key]} )); then
        _etcmodel_known[$key]=$(etcmodel $asked --help 2>/dev/null | @FLAGS@ |
            @AS_WORDS@)
    fi
    flags=(${(f)_etcmodel_known[$key]})
    compadd -S '' -- $flags
}
compdef _etcmodel etcmodel
"""

_FISH = r"""
function __etcmodel_flags
    set -l words (commandline -opc)[2..]
    set -l asked
    for word in $words
        string match -q -- '-*' $word; or set -a asked $word
    end
    etcmodel $asked[1..2] --help 2>/dev/null | @FLAGS@ | @AS_WORDS@
end
complete -c etcmodel -f -n __fish_use_subcommand -a '@COMMANDS@'
@CASES@
complete -c etcmodel -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__etcmodel_flags)'
"""

_CASES = {
    "bash": '        {command}) names="{names}" ;;',
    "zsh": '        {command}) names="{names}" ;;',
    "fish": "complete -c etcmodel -f -a '{names}' "
    "-n 'test (count (commandline -opc)) -eq 2; and __fish_seen_subcommand_from {command}'",
}
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompletionOptions(Options):
    """Which shell completes."""

    shell: str = option("bash", "Shell to print the script for.", choices=tuple(sorted(_SCRIPTS)))


def script(shell):
    """The script: str. `shell` is "bash", "fish" or "zsh"."""
    cases = [
        _CASES[shell].format(command=name, names=" ".join(command.names()))
        for name, command in COMMANDS.items()
        if command.names()
    ]
    parts = {
        "@COMMANDS@": " ".join(COMMANDS),
        "@CASES@": "\n".join(cases),
        "@FLAGS@": _FLAGS,
        "@AS_WORDS@": _AS_WORDS,
    }
    text = _SCRIPTS[shell].lstrip()
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


def run(options):
    """Prints the script as `CompletionOptions` say."""
    print(script(options.shell), end="")


if __name__ == "__main__":
    run_program(CompletionOptions, run, section="completion")
