"""The programs, run in this process."""

import json

from absl import flags

from etcmodel.preprocessing import program as preprocessing_program
from etcmodel.pretrain import preprocess
from etcmodel.pretrain import program as pretrain_program
from tests.pretrain import windows


def make_records(folder, text_file, vocab, **changes):
    """Runs the preprocessing in this process; returns the statistics."""
    options = preprocess.PreprocessOptions(
        **{
            "input_pattern": str(text_file),
            "output_prefix": str(folder / "text"),
            "vocab_file": str(vocab),
            "long_seq_length": windows.LONG,
            "global_seq_length": windows.GLOBAL,
            "num_shards": 2,
            "min_sentences": 3,
            "sentence_splitter": "simple",
            **changes,
        }
    )
    job = preprocessing_program.make_job(options, *preprocess.load_parts())
    return preprocess.run_job(job)


def flag_list(arguments):
    return [f"--{name}={value}" for name, value in arguments.items()]


def run_here(**arguments):
    """Runs run_pretraining in this process."""
    program = pretrain_program.Program(flags.FlagValues())
    program.define_flags()
    program.flag_values(["run_pretraining", *flag_list(arguments)])
    program.main([])


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]
