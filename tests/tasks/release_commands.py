"""The commands of the release's run scripts, task by task, and the flags that they leave out."""

ETC_CONFIG = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "local_radius": 8}
ETC_CONFIG |= {"intermediate_size": 16, "relative_pos_max_distance": 4, "relative_vocab_size": 12}


LENGTHS = {"hotpotqa": (320, 96), "nq": (128, 48), "wikihop": (160, 56), "openkp": (104, 16)}


# As the release's documentation has it; {} is a folder. A program's second job takes the flags of
# `both` and `evaluation`.
TPU = {"use_tpu": "true", "tpu_name": "a-tpu", "tpu_zone": "a-zone", "gcp_project": "a-project"}


COMMANDS = {
    "nq": {
        "both": {
            "etc_config_file": "{}/etc_config.json",
            "output_dir": "{}/model",
            "gold_cache_path": "{}/cache",
            "train_precomputed_file": "{}/nq-train*",
            "predict_precomputed_file": "{}/nq-dev*",
            "train_num_precomputed": "12",
            "init_checkpoint": "{}/model.ckpt",
            **TPU,
            "grad_checkpointing_period": "1",
        },
        "training": {"do_train": "true"},
        "evaluation": {"do_predict": "true"},
        "sizes": {
            "max_seq_length": "128",
            "max_global_seq_length": "48",
            "train_batch_size": "4",
            "num_train_epochs": "1",
        },
    },
    "hotpotqa": {
        "both": {
            "etc_config_file": "{}/etc_config.json",
            "init_checkpoint": "{}/model.ckpt",
            "output_dir": "{}/model",
            "train_tf_examples_filepattern": "{}/tf_examples_train-*-of-00002",
            "num_train_tf_examples": "12",
            "predict_tf_examples_filepattern": "{}/tf_examples_dev_distractor-*-of-00002",
            "predict_gold_json_file": "{}/dev.json",
            "spm_model_file": "",
            "vocab_file": "{}/vocab.txt",
            "max_long_seq_length": "320",
            "max_global_seq_length": "96",
            "learning_rate": "5e-5",
            "num_train_epochs": "1",
            "train_batch_size": "4",
            "predict_batch_size": "2",
            "flat_sequence": "False",
            **TPU,
            "grad_checkpointing_period": "0",
            "num_tpu_cores": "32",
        },
        "training": {"run_mode": "train"},
        "evaluation": {"run_mode": "predict"},
        "sizes": {},
    },
    "wikihop": {
        "both": {
            "source_model_config_file": "{}/etc_config.json",
            "output_dir": "{}/model",
            "init_checkpoint": "{}/model.ckpt",
            "candidate_ignore_hard_g2l": "True",
            "query_ignore_hard_g2l": "True",
            "enable_l2g_linking": "True",
            "long_seq_len": "160",
            "global_seq_len": "56",
            "optimizer": "adamw",
            "learning_rate": "4e-5",
            "train_batch_size": "4",
            "num_train_examples": "12",
            **TPU,
            "grad_checkpointing_period": "0",
            "num_tpu_cores": "32",
            "local_radius": "-1.0",
        },
        "training": {"do_train": "True", "input_tf_records_path": "{}/train/tf_examples*"},
        "evaluation": {
            "do_eval": "True",
            "eval_batch_size": "8",
            "input_tf_records_path": "{}/dev/tf_examples*",
        },
        "sizes": {"num_train_epochs": "1"},
    },
    "openkp": {
        "both": {
            "etc_config_file": "{}/etc_config.json",
            "output_dir": "{}/model",
            "init_checkpoint": "{}/model.ckpt",
            "batch_size": "4",
            "num_train_examples": "12",
            **TPU,
            "grad_checkpointing_period": "1",
        },
        "training": {"do_train": "true", "input_tfrecord": "{}/OpenKPTrain.tfrecord*"},
        "evaluation": {
            "do_eval": "true",
            "input_tfrecord": "{}/OpenKPDev.tfrecord*",
            "eval_text_example_path": "{}/dev.jsonl",
            "eval_fraction_of_removed_examples": "0.25",
        },
        "sizes": {"long_max_length": "104", "global_max_length": "16", "num_train_epochs": "1"},
    },
}


TASKS = sorted(COMMANDS)


def command(task, job, folder):
    """The flags of a job: dict."""
    parts = COMMANDS[task]
    arguments = {**parts["both"], **parts[job], **parts["sizes"]}
    return {name: value.format(folder) for name, value in arguments.items()}


def here(task, job, folder):
    """The flags of a job without TPU and initial weights, with a checkpoint a step."""
    arguments = command(task, job, folder)
    del arguments["init_checkpoint"]
    return {**arguments, "use_tpu": "False", "save_checkpoints_steps": "1"}


# The flags of the release that neither the commands above nor ours of the same name have.
OTHER_FLAGS = {
    "nq": "do_inference=false inference_output_name=x iterations_per_loop=1000 master=x "
    "verbose_logging=true tpu_job_name=x sep_tok_id=102 cls_tok_id=101 "
    "max_short_answer_len=32",
    "hotpotqa": "tpu_job_name=x iterations_per_loop=500 master=x save_raw_predictions=false "
    "export_ckpts=x",
    "wikihop": "predict_ckpt=x predict_output_file_path=x hidden_dropout_prob=-1 "
    "attention_probs_dropout_prob=-1 do_predict=false do_export=false max_eval_steps=600 "
    "iterations_per_loop=1000 keep_checkpoint_max=100 use_one_hot_embeddings=false "
    "add_final_layer=true master=x tpu_job_name=x num_dev_examples=5129",
    "openkp": "predict_text_example_path=x predict_checkpoint_path=x predict_output_name=inference "
    "num_labels=3 iterations_per_loop=200 master=x verbose_logging=true tpu_job_name=x "
    "x_coords_min=-50 indicators_to_cross=global_block_indicator,global_bold_indicator",
}
