"""Names, defaults and aliases of the options of every program, and how they are shared."""

import collections
import dataclasses
import importlib
import pathlib
import re
import shlex

import pytest
from absl import flags

from etcmodel import options, training
from etcmodel.finetuning import program as program_lib
from etcmodel.pretrain import program as pretrain_program
from etcmodel.pretrain.char_lm import config as char_lm
from tests import page

# Long and global length by default: of preprocess and features, and of the run.
LENGTHS = {
    "classification": ((4096, 230), (4096, 230)),
    "coreference": ((4096, 430), (4096, 430)),
    "hotpotqa": ((2048, 256), (4096, 230)),
    "majority_tagging": ((512, 2), (512, 2)),
    "nq": ((4096, 230), (4096, 230)),
    "numerical_reasoning": ((140, 2), (140, 2)),
    "openkp": ((4096, 512), (4096, 512)),
    "squad": ((384, 128), (384, 128)),
    "summarization": ((4096, 230), (4096, 230)),
    "token_classification": ((4096, 230), (4096, 230)),
    "triviaqa": ((4096, 430), (4096, 430)),
    "wikihop": ((4096, 430), (4096, 430)),
    "pretrain": ((4096, 230), (4096, 230)),
}
# The names that a program had before it had the canonical ones.
PREPROCESS_NAMES = {
    "classification": "input_pattern output_prefix labels labels_file problem_type",
    "coreference": "stride",
    "hotpotqa": "input_json_filename output_tf_examples_file_path_prefix num_shards "
    "output_tf_examples_stat_filename spm_model_file vocab_file do_lower_case split_punctuation "
    "global_seq_length long_seq_length release_compatible direct_num_workers strict is_training "
    "answer_encoding_method debug",
    "majority_tagging": "pairs is_training",
    "nq": "input_pattern output_prefix input_dir output_dir statistics_file tokenizer_type "
    "spm_model_path seq_len global_seq_len stride question_len is_training include_unknown_rate "
    "include_unknown_rate_for_unanswerable predict_la_when_no_sa include_html_tokens "
    "global_token_types fixed_blocks fixed_block_size seed num_shards vocab_file do_lower_case "
    "split_punctuation release_compatible direct_num_workers strict",
    "numerical_reasoning": "max_answer_length is_training",
    "openkp": "input_patterns output_dir output_tf_examples_file_path_prefix output_num_shards "
    "output_tf_examples_stat_filename bert_vocab_path spm_model_path long_max_length "
    "global_max_length url_max_code_points fixed_block_len kp_max_length is_training "
    "do_lower_case split_punctuation release_compatible direct_num_workers strict",
    "squad": "doc_stride max_query_length version_2_with_negative is_training",
    "summarization": "target_length piece_id_offset text_fields summary_fields id_fields",
    "token_classification": "labels labels_file stride word_column tag_column",
    "triviaqa": "evidence_dir stride is_training",
    "wikihop": "input_train_json_filepath input_dev_json_filepath output_dir_path "
    "num_train_shards num_dev_shards tokenizer_type init_checkpoint spm_model_path vocab_file "
    "global_seq_len long_seq_len max_num_sentences shuffle_docs_within_example random_seed "
    "sentence_splitter do_lower_case split_punctuation release_compatible direct_num_workers "
    "strict",
    "pretrain": "input_pattern output_prefix statistics_file global_seq_length long_seq_length "
    "min_sentences pack_documents sentence_splitter document_separator num_shards vocab_file "
    "spm_model_file do_lower_case split_punctuation release_compatible direct_num_workers strict",
}
PROGRAM_NAMES = "run_mode etc_config_file grad_checkpointing_period "
FINETUNING_NAMES = (
    PROGRAM_NAMES + "export_dir export_ckpts eval_timeout predictions_file do_lower_case "
    "split_punctuation initialization release_compatible "
)
RUN_NAMES = {
    "classification": FINETUNING_NAMES + "pooling class_weights problem_type labels",
    "coreference": FINETUNING_NAMES + "stride max_span_width top_span_ratio max_top_antecedents "
    "coref_depth ffnn_size feature_size head_dropout head_rate_factor",
    "hotpotqa": FINETUNING_NAMES + "train_tf_examples_filepattern num_train_tf_examples "
    "predict_tf_examples_filepattern predict_gold_json_file predict_input_json_file "
    "spm_model_file vocab_file max_long_seq_length max_global_seq_length answer_encoding_method "
    "flat_sequence supporting_fact_threshold max_answer_length",
    "majority_tagging": FINETUNING_NAMES + "pairs num_memory_tokens chunk_size",
    "nq": FINETUNING_NAMES + "train_precomputed_file train_num_precomputed "
    "predict_precomputed_file gold_cache_path input_file curve_plot_file spm_model_path vocab_file "
    "max_seq_length max_global_seq_length mask_long_output cls_tok_id sep_tok_id stride "
    "question_len include_html_tokens fixed_blocks fixed_block_size span_selection_method "
    "consider_answer_type max_short_answer_len",
    "numerical_reasoning": FINETUNING_NAMES
    + "max_answer_length num_memory_tokens chunk_size untied_memory",
    "openkp": FINETUNING_NAMES + "input_tfrecord num_train_examples eval_input_tfrecord "
    "eval_text_example_path predict_text_example_path predict_input_file bert_vocab_path "
    "spm_model_path long_max_length global_max_length url_num_code_points fixed_block_len "
    "kp_max_length max_kp_predictions max_position_predictions num_labels label_occurrences "
    "eval_fraction_of_removed_examples additive_smoothing_mass use_visual_features_in_global "
    "use_visual_features_in_long extra_dense_feature_layers x_coords_min heights_max "
    "indicators_to_cross",
    "squad": FINETUNING_NAMES + "doc_stride max_query_length version_2_with_negative "
    "max_answer_length n_best_size null_score_diff_threshold",
    "summarization": FINETUNING_NAMES + "target_length num_beams length_penalty max_new_tokens "
    "min_new_tokens no_repeat_ngram_size label_smoothing batch_by_length",
    "token_classification": FINETUNING_NAMES + "stride labels",
    "triviaqa": FINETUNING_NAMES + "evidence_dir stride max_answer_length answer_score by_document",
    "wikihop": FINETUNING_NAMES + "input_tf_records_path num_train_examples dev_tf_records_path "
    "input_dev_json_filepath predict_input_json_filepath predict_output_file_path spm_model_path "
    "vocab_file long_seq_len global_seq_len max_num_sentences sentence_splitter "
    "enable_l2g_linking candidate_ignore_hard_g2l query_ignore_hard_g2l add_final_layer "
    "local_radius hidden_dropout_prob attention_probs_dropout_prob label_smoothing "
    "use_one_hot_embeddings",
    "pretrain": PROGRAM_NAMES + "preset train_tf_examples_filepattern num_train_tf_examples "
    "eval_tf_examples_filepattern spm_model_file vocab_file split_punctuation "
    "max_long_seq_length max_global_seq_length mlm_share cpc_share mlm_weight cpc_weight "
    "max_cpc_sentence_length cpc_warmup_steps cpc_projection_size cpc_temperature "
    "gather_negatives initialization",
}
CANONICAL = {
    "preprocess": {"input_pattern", "num_shards", "vocab_file", "spm_model_file"}
    | {"long_seq_length", "global_seq_length"},
    "run": {"train_data", "eval_data", "num_train_examples", "model_config_file", "vocab_file"}
    | {"spm_model_file", "long_seq_length", "global_seq_length", "output_dir", "run_mode"},
}
TASKS = sorted(LENGTHS)


def options_of(task):
    """The classes of the options of its `preprocess`, of its runs, and of its features."""
    package = "etcmodel.pretrain" if task == "pretrain" else f"etcmodel.tasks.{task}"
    preprocess, run, config = (
        importlib.import_module(f"{package}.{name}") for name in ("preprocess", "task", "config")
    )
    own = [x for x in vars(run).values() if getattr(x, "__module__", "") == run.__name__]
    (of_run,) = (x.config_class for x in own if isinstance(getattr(x, "config_class", 0), type))
    own = [x for x in vars(config).values() if getattr(x, "__module__", "") == config.__name__]
    (of_features,) = (x for x in own if getattr(x, "__name__", "").endswith("InputConfig"))
    return preprocess.PreprocessOptions, of_run, of_features


PREPROCESS, CONFIGS, INPUT_CONFIGS = (
    dict(zip(TASKS, classes, strict=True)) for classes in zip(*map(options_of, TASKS), strict=True)
)


def run_flags(task):
    values = flags.FlagValues()
    if task == "pretrain":
        pretrain_program.Program(values).define_flags()
    else:
        program_lib.Program(
            dataclasses.make_dataclass("Task", [("config_class", type, CONFIGS[task])]),
            None,
            values,
        ).define_flags({})
    return values


def preprocess_flags(task):
    values = flags.FlagValues()
    options.ProgramFlags({"preprocess": PREPROCESS[task]}, values).define()
    return values


@pytest.mark.parametrize("task", TASKS)
def test_programs_have_the_canonical_names_and_those_they_had(task):
    preprocess, run = preprocess_flags(task), run_flags(task)
    assert set(preprocess) >= CANONICAL["preprocess"] | set(PREPROCESS_NAMES[task].split())
    assert set(run) >= CANONICAL["run"] | set(RUN_NAMES[task].split())
    if task != "pretrain":
        assert set(run) >= {"eval_gold", "input_file", "predictions_file"}
    for values in (preprocess, run):
        for name in values:
            assert len(values[name].help) > 5, name


@pytest.mark.parametrize("task", TASKS)
def test_lengths_have_the_defaults_they_had(task):
    made, trained = LENGTHS[task]
    for options_class, expected in (
        (PREPROCESS[task], made),
        (INPUT_CONFIGS[task], made),
        (CONFIGS[task], trained),
    ):
        defaults = {field.name: field.default for field in dataclasses.fields(options_class)}
        assert (defaults["long_seq_length"], defaults["global_seq_length"]) == expected


@pytest.mark.parametrize("task", TASKS)
def test_features_are_told_by_preprocess_alone_and_then_by_the_records(task):
    """What the features of preprocess are made with is an option of features of the run as well."""

    def of_features(options_class):
        fields = options.option_fields(options_class)
        return {field.name for field in fields if field.metadata["role"] == "features"}

    of_config = of_features(CONFIGS[task]) - {"do_lower_case", "split_punctuation"}
    of_records = {field.name for field in dataclasses.fields(INPUT_CONFIGS[task])}
    assert {"long_seq_length", "global_seq_length"} <= of_config <= of_records
    assert of_features(PREPROCESS[task]) - {"split_punctuation", "release_compatible"} <= of_records


@pytest.mark.parametrize(
    ("task", "role"),
    [("hotpotqa", "inference"), ("nq", "inference"), ("wikihop", "inference"), ("openkp", "model")],
)
def test_the_faults_of_the_release_may_be_chosen_at_prediction(task, role):
    fields = options.option_fields(CONFIGS[task])
    (field,) = [field for field in fields if field.name == "release_compatible"]
    assert field.metadata["role"] == role


@pytest.mark.parametrize("options_class", [*PREPROCESS.values(), *CONFIGS.values()])
def test_options_are_frozen(options_class):
    assert options_class.__dataclass_params__.frozen
    assert training.TrainingConfig.__dataclass_params__.frozen


ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAM = re.compile(r"python -m etcmodel\.(?:tasks\.)?(\w+)\.(preprocess|run_\w+) (.*)")


def char_lm_flags():
    values = flags.FlagValues()
    char_lm.option_flags(values).define()
    return values


def flags_and_options(task, program):
    """(flags, options class) of a program."""
    if program == "preprocess":
        return preprocess_flags(task), PREPROCESS[task]
    if program == "run_char_lm":
        return char_lm_flags(), char_lm.CharLmOptions
    return run_flags(task), CONFIGS[task]


def documented_commands():
    """(task, program, arguments) of each command in the pages' blocks of code."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S):
        block = block.replace("\\\n", " ").replace("…", "")
        variables = dict(re.findall(r'^(\w+)="([^"]*)"', block, re.M))
        for name, value in variables.items():
            block = block.replace(f"${name}", value.replace("\n", " "))
        for task, program, arguments in PROGRAM.findall(block):
            yield task, program, shlex.split(arguments)


def test_the_commands_of_the_pages_are_of_canonical_names():
    checked = collections.Counter()
    for task, program, arguments in documented_commands():
        values, options_class = flags_and_options(task, program)
        values(["program", *arguments])
        aliases = options.aliases_of(options_class) | options.ModelOptions.aliases
        given = {name for name in values if values[name].present}
        assert not given & set(aliases), (task, program)
        checked[program] += 1
    assert checked["preprocess"] >= 10 and checked["run_finetuning"] >= 12, checked


def test_the_page_of_options_tells_all_aliases():
    text = page.read("programs.md#options")
    for options_class in (*PREPROCESS.values(), *CONFIGS.values(), options.ModelOptions):
        for alias, name in options.aliases_of(options_class).items():
            assert f"`{alias}`" in text and f"`--{name}`" in text, (alias, name)
