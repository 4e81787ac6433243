"""Converts HotpotQA's JSON into sharded TFRecords.

Also writes `<prefix>.config.json` (the settings of the records) and the statistics. Flags of Apache
Beam, such as `--runner=DataflowRunner`, are accepted too.

  python -m etcmodel.tasks.hotpotqa.preprocess --input_pattern=hotpot_train_v1.1.json \
    --output_prefix=/data/train --vocab_file=vocab.txt
"""

import dataclasses

from etcmodel.options import ANY_VOCABULARY, changed
from etcmodel.preprocessing import program

from .config import MAX_NUM_PARAGRAPHS, HotpotQAExampleOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreprocessOptions(HotpotQAExampleOptions, program.PreprocessOptions):
    """HotpotQA's options; those of role "features" are arguments of `HotpotQAInputConfig`."""

    aliases = {
        "input_json_filename": "input_pattern",
        "output_tf_examples_file_path_prefix": "output_prefix",
        "output_tf_examples_stat_filename": "statistics_file",
    }
    help_texts = {
        "vocab_file": f"{ANY_VOCABULARY} Without --evidence_as=marks, word pieces only.",
        "input_pattern": "HotpotQA's JSON file (a pattern for several), packed or not, or "
        "Hugging Face's layout of it.",
    }

    debug: bool = changed(HotpotQAExampleOptions, "debug", default=True)

    def feature_fields(self):
        fields = {**super().feature_fields(), "first_stage": self.first_stage}
        if self.first_stage and self.max_num_paragraphs is None:
            fields["max_num_paragraphs"] = MAX_NUM_PARAGRAPHS
        return fields


load_parts = program.parts_beside(__package__)


if __name__ == "__main__":
    program.run_program(PreprocessOptions, load_parts)
