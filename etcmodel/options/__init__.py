"""Options of programs: fields of frozen dataclasses that define flags and the keys of YAML files.

An option is declared once, as a field, whose name is also the name of the flag and of the YAML key.
A class of options may define `aliases`, which are further names of its fields. TensorFlow is not
needed.
"""

from etcmodel.options.common import (
    ANY_VOCABULARY,
    WORD_PIECES,
    DataOptions,
    FeatureOptions,
    LengthOptions,
    ModelOptions,
    OneInputOptions,
    PaddingOptions,
    ResumeOptions,
    TableOptions,
    VocabularyOptions,
    WindowOptions,
)
from etcmodel.options.config_files import checked, dump, load, load_kept
from etcmodel.options.fields import (
    ROLES,
    Options,
    aliases_of,
    changed,
    check_files,
    from_kept,
    kept,
    kept_name,
    option,
    option_fields,
    select,
    shared,
)
from etcmodel.options.program_flags import (
    ProgramFlags,
    Values,
    run_main,
    run_program,
    values_from_flags,
)

__all__ = [
    "ANY_VOCABULARY",
    "WORD_PIECES",
    "ROLES",
    "DataOptions",
    "FeatureOptions",
    "LengthOptions",
    "ModelOptions",
    "OneInputOptions",
    "Options",
    "PaddingOptions",
    "ProgramFlags",
    "ResumeOptions",
    "TableOptions",
    "Values",
    "VocabularyOptions",
    "WindowOptions",
    "aliases_of",
    "changed",
    "check_files",
    "checked",
    "dump",
    "from_kept",
    "kept",
    "kept_name",
    "load",
    "load_kept",
    "option",
    "option_fields",
    "run_main",
    "run_program",
    "select",
    "shared",
    "values_from_flags",
]
