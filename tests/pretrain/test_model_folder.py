"""Pre-training goes on from a BERT's folder, which tells its sizes and its vocabulary."""

import json

import numpy as np
import pytest

import etcmodel
from tests.checkpoints import berts
from tests.pretrain import windows
from tests.pretrain.runs import make_records, run_here

pytestmark = pytest.mark.slow


def test_a_berts_folder_becomes_a_pre_trained_one(tmp_path, capsys):
    bert = berts.write_folder(tmp_path / "my_bert", windows.VOCAB)
    head = berts.masked_lm_weights(len(windows.VOCAB))
    encoder = berts.hugging_face_weights(vocab_size=len(windows.VOCAB))
    berts.write_safetensors(bert, {**encoder, **head})
    vocab, text = bert / "vocab.txt", tmp_path / "text.jsonl"
    documents = [windows.document(str(n), *range(n, n + 4)) for n in range(8)]
    text.write_text("".join(f"{json.dumps(document)}\n" for document in documents))
    make_records(tmp_path, text, vocab, pack_documents=False)
    records = {"train_data": tmp_path / "text-*.tfrecord", "init_checkpoint": bert}
    given = {"output_dir": tmp_path / "run", "train_batch_size": 2, "num_train_epochs": 1}
    given |= {"learning_rate": 0.0, **records}
    run_here(**given)
    (bert / "config.json").unlink()
    (bert / "model.safetensors").unlink()
    run_here(**given)  # Goes on, and is at its end.
    run = {"output_dir": tmp_path / "run"}
    run_here(run_mode="evaluate", eval_data=tmp_path / "text-*.tfrecord", **run)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["mlm_loss"] > 0
    run_here(run_mode="save_pretrained", **run)

    model = etcmodel.from_pretrained(tmp_path / "run" / "pretrained")
    # That of a masked sentence, which is encoded alone.
    assert model.config.max_absolute_position_embeddings == 64 > windows.LONG
    assert list(model.processor.vocabulary) == windows.VOCAB
    table = model.encoder.get_token_embedding_table().numpy()
    np.testing.assert_array_equal(table, encoder["bert.embeddings.word_embeddings.weight"])
    bias = model.language_model.bias.numpy()
    np.testing.assert_array_equal(bias, head["cls.predictions.bias"])
