"""A checkpoint that is not there is named with the place where the authors have it."""

import pytest

from etcmodel import checkpoints
from etcmodel.models import downloads
from tests.checkpoints.test_coverage import make_model


class TestDownloads:
    """Where nothing is found, the error says where the released checkpoints are, in one line."""

    @pytest.mark.parametrize(
        "path, url",
        [
            ("absent/model.ckpt", "NAME"),
            ("etc_large_split_punctuation/model.ckpt", "etc_large_split_punctuation"),
            ("etc_base_2x_pretrain", "etc_base_2x_pretrain"),
            ("etc_large/model.safetensors", "etc_large"),
        ],
    )
    @pytest.mark.parametrize("load", [checkpoints.initialize, checkpoints.load_pretrained])
    def test_of_a_missing_checkpoint(self, tmp_path, path, url, load):
        path = str(tmp_path / path)
        with pytest.raises(ValueError) as error:
            load(make_model(), path) if load is checkpoints.initialize else load(path)
        self.assert_tells(str(error.value), path, url)

    @pytest.mark.parametrize("name", ["allenai/longformer-base-4096", "bert-base-uncased"])
    def test_of_a_name_on_the_hub(self, tmp_path, monkeypatch, name):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ValueError) as error:
            checkpoints.initialize(make_model(), name)
        folder = name.rpartition("/")[2]
        assert str(error.value) == (
            f"No readable checkpoint at {name!r}: there is no such file. If this is a model of the "
            f"Hugging Face Hub, give it as hf:{name}, or fetch it by `hf download {name} "
            f"--local-dir {folder}`, and give that folder."
        )

    def test_of_a_name_that_is_not_reached(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ValueError, match="hf:allenai/longformer-base-4096 is not in the cach"):
            checkpoints.from_pretrained("allenai/longformer-base-4096")
        with pytest.raises(ValueError, match="no directory 'bert-base-uncased'. If .* hf:bert-bas"):
            checkpoints.from_pretrained("bert-base-uncased")

    @pytest.mark.parametrize(
        "path",
        ["run/my-bert", "run/ckpt-500/model.ckpt", "bert-base.ckpt-500", "./bert-base", "run"],
    )
    def test_of_a_path_that_is_no_name_on_the_hub(self, tmp_path, monkeypatch, path):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "run").mkdir()
        hint = downloads.download_hint(path)
        assert hint.startswith("The released checkpoints are etc_base_2x_pretrain, ")

    def test_of_an_empty_directory(self, tmp_path):
        directory = tmp_path / "etc_large"
        directory.mkdir()
        with pytest.raises(ValueError) as error:
            checkpoints.initialize(make_model(), str(directory))
        self.assert_tells(str(error.value), str(directory), "etc_large")

    def assert_tells(self, message, path, url):
        assert f"'{path}'" in message
        assert ", ".join(downloads.RELEASED_CHECKPOINTS) in message
        assert message.endswith(f": `etcmodel download {url}`.")
        assert "\n" not in message

    def test_of_a_folder_of_hugging_face_without_weights(self, tmp_path):
        (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
        with pytest.raises(ValueError, match="must hold one checkpoint; found none"):
            checkpoints.load_pretrained(str(tmp_path))
