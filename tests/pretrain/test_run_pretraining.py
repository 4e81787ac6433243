"""The programs: from text to a checkpoint that fine-tuning starts from."""

import json
import math
import re

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

import etcmodel
from etcmodel import checkpoints, training
from etcmodel.finetuning import model_folder
from etcmodel.models import modeling, presets
from etcmodel.pretrain import program as pretrain_program
from etcmodel.pretrain import task
from etcmodel.tasks.hotpotqa.model import HotpotQaModel
from tests.pretrain import windows
from tests.pretrain.runs import lines_of, make_records, run_here

pytestmark = pytest.mark.slow

NUM_DOCUMENTS = 12


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Records with their statistics, and flags to train on them."""
    folder = tmp_path_factory.mktemp("pretrain")
    vocab = windows.write_vocab(folder)
    documents = [windows.document(str(n), *range(n, n + 4 + n % 3)) for n in range(NUM_DOCUMENTS)]
    documents.append(windows.document("short", 0, 1))
    text = folder / "text.jsonl"
    lines = [json.dumps(document) for document in documents]
    text.write_text("\n".join([*lines[:4], "{broken", *lines[4:]]) + "\n", encoding="utf-8")
    statistics = make_records(folder, text, vocab)
    config = folder / "etc_config.json"
    config.write_text(json.dumps(windows.etc_config(num_hidden_layers=1).to_dict()))
    return {
        "folder": folder,
        "text": text,
        "vocab": vocab,
        "statistics": statistics,
        "flags": {
            "output_dir": folder / "model",
            "etc_config_file": config,
            "vocab_file": vocab,
            "train_tf_examples_filepattern": folder / "text-*.tfrecord",
            "eval_tf_examples_filepattern": folder / "text-*.tfrecord",
            "max_long_seq_length": windows.LONG,
            "max_global_seq_length": windows.GLOBAL,
            "train_batch_size": 2,
            "eval_batch_size": 4,
            "num_train_epochs": 4,
        },
    }


@pytest.fixture(scope="module")
def trained(made):
    run_here(**made["flags"])
    return made


class TestPreprocessing:
    def test_statistics_tell_what_became_of_the_text(self, made):
        statistics = made["statistics"]
        assert statistics["documents"] == NUM_DOCUMENTS + 1
        assert statistics["documents_too_short"] == 1
        assert statistics["examples_bad"] == 1
        assert "text.jsonl:5: malformed JSON" in statistics["bad_examples"][0]
        num_windows = statistics["examples_written"]
        fill_rate = statistics["long_tokens"] / (num_windows * windows.LONG)
        assert 0.5 < statistics["fill_rate"] == pytest.approx(fill_rate, abs=1e-4)
        assert statistics["sentences_per_window"] == pytest.approx(
            statistics["sentences"] / num_windows, abs=0.01
        )
        assert json.loads((made["folder"] / "text.stats.json").read_text()) == statistics

    def test_a_malformed_line_stops_a_strict_run(self, made, tmp_path):
        with pytest.raises(ValueError, match=r"text.jsonl:5: malformed JSON"):
            make_records(tmp_path, made["text"], made["vocab"], strict=True)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("text", ["", "\n\n", "Too short.\n\nThis too.\n"])
    def test_text_without_a_long_enough_document_is_refused(self, made, tmp_path, text):
        (tmp_path / "empty.txt").write_text(text)
        with pytest.raises(ValueError, match="empty.txt: no example is left to write"):
            make_records(tmp_path, tmp_path / "empty.txt", made["vocab"])

    def test_what_is_too_short_is_told_with_the_options_that_decide_it(self, made, tmp_path):
        (tmp_path / "chinese.txt").write_text("你好。" * 4, encoding="utf-8")
        with pytest.raises(ValueError) as refused:
            make_records(tmp_path, tmp_path / "chinese.txt", made["vocab"])
        assert str(refused.value).endswith(
            "documents: 1, documents too short: 1. Too short are documents with fewer sentences "
            "than --min_sentences=3, of those that --sentence_splitter=simple finds; a blank line "
            "ends a document, or the file with --document_separator=file."
        )
        splitter = {"sentence_splitter": "multilingual"}
        made = make_records(tmp_path, tmp_path / "chinese.txt", made["vocab"], **splitter)
        assert (made["documents_too_short"], made["sentences"]) == (0, 4)

    def test_release_compatible_means_nothing_here(self, made, tmp_path):
        with pytest.raises(ValueError, match="--release_compatible"):
            make_records(tmp_path, made["text"], made["vocab"], release_compatible=True)


class TestInputs:
    """Masks follow a window's place in the run."""

    @pytest.fixture
    def batches(self, made):
        tokenizer = windows.make_tokenizer(made["folder"])
        records = task.RecordConfig(
            long_seq_length=windows.LONG,
            global_seq_length=windows.GLOBAL,
            vocab_size=len(windows.VOCAB),
        )
        config = windows.masking_config(tokenizer)
        pattern = str(made["folder"] / "text-*.tfrecord")

        def make(count, **request):
            request = training.TrainDataRequest(**request)
            dataset = task.make_train_dataset(pattern, records, config, request)
            return list(dataset.take(count).as_numpy_iterator())

        return make

    def test_a_window_is_masked_differently_in_every_epoch(self, made, batches):
        num_windows = made["statistics"]["examples_written"]
        first, second = batches(2, global_batch_size=num_windows)
        restored = [restore(batch) for batch in (first, second)]
        order = [[row.tobytes() for row in batch] for batch in restored]
        assert sorted(order[0]) == sorted(order[1])
        masks = [
            dict(zip(order[i], b["mlm_positions"].tolist(), strict=True))
            for i, b in enumerate((first, second))
        ]
        assert any(masks[0][row] != masks[1][row] for row in order[0])

    def test_a_resumed_run_sees_the_same_masks(self, batches):
        through = batches(4, global_batch_size=2, seed=3)
        resumed = batches(2, global_batch_size=2, seed=3, skip_examples=4)
        for expected, found in zip(through[2:], resumed, strict=True):
            for name in expected:
                np.testing.assert_array_equal(expected[name], found[name])

    def test_two_workers_share_the_windows_of_one(self, batches):
        (whole,) = batches(1, global_batch_size=4)
        for worker in range(2):
            context = tf.distribute.InputContext(2, worker, 2)
            (part,) = batches(1, global_batch_size=4, input_context=context)
            for name in whole:
                np.testing.assert_array_equal(whole[name][worker::2], part[name])


def restore(batch):
    """The tokens as they were: [batch, long_len]."""
    ids = batch["long_token_ids"].copy()
    for row in range(len(ids)):
        real = batch["mlm_mask"][row] > 0
        ids[row, batch["mlm_positions"][row][real]] = batch["mlm_labels"][row][real]
        for i in np.flatnonzero(batch["cpc_mask"][row]):
            at = batch["sentence_ids"][row] == batch["cpc_sentences"][row, i]
            ids[row, at] = batch["cpc_token_ids"][row, i, : batch["cpc_lengths"][row, i]]
    return ids


class TestTraining:
    def test_both_tasks_are_reported(self, trained):
        model = trained["folder"] / "model"
        names = {"mlm_loss", "mlm_accuracy", "cpc_loss", "cpc_accuracy", "cpc_chance"}
        for log in ("train_metrics.jsonl", "eval_metrics.jsonl"):
            last = lines_of(model / log)[-1]
            assert names <= set(last)
            weighted = 0.8 * last["mlm_loss"] + 0.2 * last["cpc_loss"]
            assert last["loss"] == pytest.approx(weighted, rel=1e-5)

    def test_evaluation_repeats_the_metrics_of_the_run(self, trained, capsys):
        run_here(**trained["flags"], run_mode="evaluate")
        printed = json.loads(capsys.readouterr().out.splitlines()[-1])
        logged = lines_of(trained["folder"] / "model" / "eval_metrics.jsonl")
        del logged[-1]["step"]
        assert printed == pytest.approx(logged[-1], rel=1e-5)

    def test_evaluation_takes_model_and_options_from_the_run(self, trained, capsys):
        flags = {
            "run_mode": "evaluate",
            "output_dir": trained["folder"] / "model",
            "eval_tf_examples_filepattern": trained["flags"]["eval_tf_examples_filepattern"],
        }
        run_here(**flags, eval_batch_size=4)
        printed = json.loads(capsys.readouterr().out.splitlines()[-1])
        logged = lines_of(trained["folder"] / "model" / "eval_metrics.jsonl")[-1]
        assert printed["loss"] == pytest.approx(logged["loss"], rel=1e-5)
        for contradiction, message in (
            ({"mlm_weight": 0.5}, "--mlm_weight=0.5: the run in "),
            ({"preset": "etc_base"}, "was made with another config: vocab_size is 30522, and"),
            ({"optimizer": "adamw"}, "--optimizer=adamw: the run in "),
        ):
            with pytest.raises(SystemExit):
                run_here(**flags, **contradiction)
            assert message in capsys.readouterr().err

    def test_the_checkpoint_starts_a_fine_tuning(self, trained):
        config_file = trained["folder"] / "model" / "etc_config.json"
        etc_config = modeling.EtcConfig.from_json_file(config_file)
        model = HotpotQaModel(etc_config)
        model.build()
        checkpoint = training.best_checkpoint(str(trained["folder"] / "model"))
        report = checkpoints.initialize(model, checkpoint)
        assert {name.split("_output")[0] for name in report.not_in_checkpoint} == {
            "supporting_facts",
            "answer_type",
            "answer_span",
        }
        pretrained = training.load_model(
            task.PretrainTask(task.PretrainConfig(encoder_config=etc_config)),
            training.TrainingConfig(output_dir=str(trained["folder"] / "model")),
        )
        weights, expected = model.etc_model.weights, pretrained.etc_model.weights
        for variable, expected_variable in zip(weights, expected, strict=True):
            np.testing.assert_array_equal(variable, expected_variable, err_msg=variable.name)

    def test_it_is_saved_as_a_folder_with_its_head_and_vocabulary(self, trained):
        run, folder = trained["folder"] / "model", trained["folder"] / "pretrained"
        run_here(run_mode="save_pretrained", output_dir=run, pretrained_dir=folder)
        saved = etcmodel.from_pretrained(folder)
        assert isinstance(saved, etcmodel.EtcForMaskedLM)
        assert saved.processor.vocabulary == tuple(windows.VOCAB)
        etc_task = task.PretrainTask(task.PretrainConfig(encoder_config=saved.encoder.config))
        model = training.load_model(etc_task, training.TrainingConfig(output_dir=str(run)))
        found = [*saved.encoder.weights, *saved.language_model.weights]
        wanted = [*model.etc_model.weights, *model.mlm_head.weights]
        for variable, expected in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(variable, expected, err_msg=variable.name)

    def test_its_end_tells_how_fine_tuning_starts(self, trained, tmp_path, capsys):
        run = trained["folder"] / "model"
        run_here(**trained["flags"], pretrained_dir=tmp_path)  # It is at its end already.
        done, best, folder, report, save, start = capsys.readouterr().err.splitlines()[-6:]
        assert re.fullmatch(r"done    step \d+", done)
        assert re.fullmatch(rf"best    step \d+, \w+ [\d.]+.*: {run}/best/ckpt-\d+", best)
        assert (folder, report) == (
            f"folder  {run}",
            f"next    etcmodel report --run={run} --output={run}/report.html",
        )
        assert save.endswith(
            f" --run_mode=save_pretrained --output_dir={run} --pretrained_dir={tmp_path}"
        )
        assert start.strip() == (
            f"etcmodel train NAME --init_checkpoint={tmp_path} --train_data=RECORDS "
            "--output_dir=RUN"
        )
        run_here(run_mode="save_pretrained", output_dir=run, pretrained_dir=tmp_path)
        model = HotpotQaModel(model_folder.encoder_config(str(tmp_path), 4096, 256))
        model.build()
        checkpoints.initialize(model, str(tmp_path))
        saved = etcmodel.from_pretrained(tmp_path).encoder
        for variable, expected in zip(model.etc_model.weights, saved.weights, strict=True):
            np.testing.assert_array_equal(variable, expected, err_msg=variable.name)

    def test_the_defaults_are_those_of_the_paper(self):
        program = pretrain_program.Program(values := flags.FlagValues())
        program.define_flags()
        values(["run_pretraining"])
        assert values.optimizer == "lamb" and values.train_batch_size == 512
        assert values.learning_rate == pytest.approx(math.sqrt(8) * 1e-3)
        assert (values.mlm_weight, values.cpc_weight) == (0.8, 0.2)
        assert (values.mlm_share, values.cpc_share) == (0.15, 0.1)
        assert set(values["preset"].parser.enum_values) == set(presets.PRESETS)

    def test_a_preset_is_the_model_of_the_paper_with_its_mask(self):
        program = pretrain_program.Program(flags.FlagValues())
        program.define_flags()
        program.flag_values(["run_pretraining", "--preset=etc_large"])
        assert program._encoder_config() == presets.preset("etc_large")
        assert presets.preset("etc_large").use_hard_g2l_mask


class TestBadInput:
    """Errors are a line on stderr, and the program exits with 1."""

    def fails(self, capsys, made, message, **changes):
        arguments = {**made["flags"], "output_dir": made["folder"] / "failing", **changes}
        arguments = {name: value for name, value in arguments.items() if value is not None}
        with pytest.raises(SystemExit) as exit_info:
            run_here(**arguments)
        printed = capsys.readouterr().err
        assert exit_info.value.code == 1 and "Traceback" not in printed
        assert printed.splitlines()[-1].startswith("error: ") and message in printed

    def test_records_of_another_vocabulary(self, capsys, made, tmp_path):
        other = tmp_path / "other.txt"
        other.write_text("\n".join(reversed(windows.VOCAB)) + "\n")
        self.fails(capsys, made, "made with another vocabulary", vocab_file=other)

    def test_model_with_too_small_a_vocabulary(self, capsys, made, tmp_path):
        path = tmp_path / "etc_config.json"
        path.write_text(json.dumps(windows.etc_config(vocab_size=9).to_dict()))
        message = f"has {len(windows.VOCAB)} entries, the model's `vocab_size` is 9"
        self.fails(capsys, made, message, etc_config_file=path)

    def test_records_of_other_lengths(self, capsys, made):
        message = f"text.config.json was made with --long_seq_length={windows.LONG}. Leave the"
        self.fails(capsys, made, message, max_long_seq_length=64)

    def test_neither_preset_nor_config(self, capsys, made):
        message = "Either --preset or --model_config_file must be given"
        self.fails(capsys, made, message, etc_config_file=None)
        self.fails(capsys, made, message, preset="etc_base")

    def test_missing_records(self, capsys, made):
        message = "--run_mode=train also needs --train_data."
        self.fails(capsys, made, message, train_tf_examples_filepattern=None)

    def test_mode_of_other_programs(self, capsys, made):
        message = "value should be one of <train.evaluate.continuous_eval.save_pretrained>"
        with pytest.raises(flags.Error, match=message):
            self.fails(capsys, made, "", run_mode="export")

    def test_share_outside_its_range(self, capsys, made):
        with pytest.raises(flags.Error, match=r"15.0 is not a number in the range \[0, 1\]"):
            self.fails(capsys, made, "", mlm_share=15)
