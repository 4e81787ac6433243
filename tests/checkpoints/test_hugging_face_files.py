"""Files of Hugging Face's of several kinds of models: in parts, in half precision, of a part."""

import functools
import json

import ml_dtypes
import numpy as np
import pytest
import safetensors
import tensorflow as tf

import etcmodel
from etcmodel.checkpoints import hugging_face, sources
from etcmodel.models import heads
from etcmodel.models.bigbird.modeling import BigBirdHead
from etcmodel.models.heads import losses, of_text
from etcmodel.models.longformer.modeling import LongformerHead
from etcmodel.models.longt5 import LongT5EncoderModel
from etcmodel.models.modernbert import modeling as modernbert_modeling
from etcmodel.models.modernbert.modeling import ModernBertHead
from etcmodel.models.pegasus_x import PegasusXModel
from tests.checkpoints import longformers as longformer_folders
from tests.checkpoints.tensor_files import rewrite, split, tensors_of
from tests.models.bigbird import small as bigbirds
from tests.models.bigbird_pegasus import models as bigbird_pegasuses
from tests.models.gmat import small as gmats
from tests.models.led import models as leds
from tests.models.longformer import small as longformers
from tests.models.longt5 import models as longt5s
from tests.models.modernbert import small as modernberts
from tests.models.pegasus_x import models as pegasus_xs
from tests.reference import cases


def encoder_alone():
    """A LongT5 without its decoder, of the weights of one with it."""
    whole = longt5s.model(num_layers=1)
    made = LongT5EncoderModel(whole.config)
    with tf.name_scope(made.name):
        made.build(None)
    weights = hugging_face.places(whole)
    for name, weight in hugging_face.places(made).items():
        weight.variable.assign(weights[name].variable)
    return made


OF_ONE = {"encoder_layers": 1, "decoder_layers": 1}  # More layers have names of their own alone.
MAKERS = {
    "bigbird_pegasus": lambda: bigbird_pegasuses.model(**OF_ONE),
    "gmat": lambda: gmats.model(num_hidden_layers=1),
    "led": lambda: leds.model(**OF_ONE, attention_window=4),
    "longformer": longformer_folders.masked_lm,
    "longt5": lambda: longt5s.model(num_layers=1),
    "longt5 encoder": encoder_alone,
    "pegasus_x": lambda: pegasus_xs.model(**OF_ONE),
    "pegasus_x base": lambda: pegasus_xs.model(PegasusXModel, **OF_ONE),
}


@functools.cache
def model_of(kind):
    return MAKERS[kind]()  # It is only read.


@pytest.fixture(params=MAKERS)
def kind(request):
    return request.param


@pytest.fixture
def folder(kind, tmp_path):
    etcmodel.save_pretrained(model_of(kind), tmp_path / "model")
    return tmp_path / "model"


def assert_same_bytes(found, wanted):
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        assert found[name].dtype == value.dtype and found[name].shape == value.shape
        assert found[name].tobytes() == value.tobytes(), name


def saved_again(folder):
    """The tensors that are written of what is read, into a folder beside it."""
    again = folder.parent / "again"
    etcmodel.save_pretrained(etcmodel.from_pretrained(folder), again)
    one, other = (json.loads((x / "config.json").read_text()) for x in (folder, again))
    # Whether a LongT5's logits are scaled may depend on the file; then it is said.
    assert one == {name: x for name, x in other.items() if name in one}
    return tensors_of(again)


REFERENCES = [
    *(("longformer", f"longformer/{kind}") for kind in ("a_base", "a_mc", "a_mlm", "a_qa")),
    *(("longformer", kind) for kind in ("longformer/a_tokcls", "led/a_generate", "led/b_qa")),
    *(("t5", f"pegasus_x/{kind}") for kind in ("a_generate", "b_lm", "c_lm")),
]
# Which old files of PEGASUS-X have.
COPIES = ("lm_head.weight", *(f"model.{x}coder.embed_tokens.weight" for x in ("en", "de")))


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize(("topic", "kind"), REFERENCES)
def test_a_folder_of_hugging_face_goes_back_byte_by_byte(topic, kind, tmp_path):
    folder = cases.topic_folder(topic) / kind
    model = etcmodel.from_pretrained(folder)
    model.save_pretrained(tmp_path)
    wanted = {name: x for name, x in tensors_of(folder).items() if name not in COPIES}
    assert_same_bytes(tensors_of(tmp_path), wanted)
    with safetensors.safe_open(tmp_path / "model.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt"}  # Others Hugging Face's library refuses.
    theirs, ours = (json.loads((x / "config.json").read_text()) for x in (folder, tmp_path))
    shared = set(theirs) & set(ours)
    assert {name: theirs[name] for name in shared} == {name: ours[name] for name in shared}
    assert {"architectures", "model_type", "vocab_size"} <= shared
    assert shared == set(ours) or not kind.startswith("led")
    assert type(etcmodel.from_pretrained(tmp_path)) is type(model)


@pytest.mark.quick_cases(4)
def test_several_files_are_one_model_byte_by_byte(folder):
    wanted = tensors_of(folder)
    files = split(folder)
    assert len(set(files.values())) == 3
    assert_same_bytes(saved_again(folder), wanted)
    lost = folder / files[min(wanted)]
    lost.unlink()
    with pytest.raises(ValueError, match=f"No safetensors file at .*{lost.name}"):
        etcmodel.from_pretrained(folder)


@pytest.mark.quick_cases(2)
def test_half_precision_is_read_exactly_and_written_as_float32(kind, folder):
    dtype = (np.float16, ml_dtypes.bfloat16)[[*MAKERS].index(kind) // 4]
    half = {name: value.astype(dtype) for name, value in tensors_of(folder).items()}
    rewrite(folder, lambda tensors: tensors.update(half))
    split(folder, 2)
    found = saved_again(folder)
    assert {value.dtype for value in found.values()} == {np.dtype(np.float32)}
    assert_same_bytes({name: value.astype(dtype) for name, value in found.items()}, half)


def test_every_name_that_misses_is_an_error(kind, folder):
    names = sorted(tensors_of(folder))
    for name in (names[0], names[len(names) // 2], names[-1]):
        if name == "final_logits_bias":  # Which a file may lack: zeros.
            continue
        kept = tensors_of(folder)
        rewrite(folder, lambda tensors, name=name: tensors.pop(name))
        with pytest.raises(ValueError, match=rf"(lacks weights of|has no weights).*{name}"):
            if kind == "gmat":  # Whose check is of loading a folder.
                etcmodel.from_pretrained(folder)
            else:
                hugging_face.load(model_of(kind), sources.open_source(str(folder)))
        rewrite(folder, lambda tensors, kept=kept: tensors.update(kept))


def test_an_encoder_alone_is_that_of_the_whole(tmp_path):
    whole, ids = longt5s.model(num_layers=1), tf.constant(longt5s.ids(2, 11))
    etcmodel.save_pretrained(whole, tmp_path / "whole")
    encoder = LongT5EncoderModel.from_pretrained(tmp_path / "whole")
    wanted = whole.encoder(ids)["last_hidden_state"]
    np.testing.assert_allclose(encoder(ids)["last_hidden_state"], wanted, atol=1e-6)
    encoder.save_pretrained(tmp_path / "encoder")
    entries = json.loads((tmp_path / "encoder" / "config.json").read_text())
    assert entries["architectures"] == ["LongT5EncoderModel"]
    names = set(tensors_of(tmp_path / "encoder"))
    assert names == {x for x in tensors_of(tmp_path / "whole") if not x.startswith("decoder.")}
    again = etcmodel.from_pretrained(tmp_path / "encoder", local_radius=9)
    assert type(again) is LongT5EncoderModel and again.config.local_radius == 9
    with pytest.raises(ValueError, match="lacks weights of 'longt5': decoder.block.0"):
        etcmodel.LongT5Model.from_pretrained(tmp_path / "encoder")


def test_of_an_encoder_alone_older_files_have_another_name_of_the_embeddings(tmp_path):
    encoder_alone().save_pretrained(tmp_path)
    wanted = tensors_of(tmp_path)
    rewrite(tmp_path, lambda x: x.update({"encoder.embed_tokens.weight": x.pop("shared.weight")}))
    etcmodel.from_pretrained(tmp_path).save_pretrained(tmp_path / "again")
    assert_same_bytes(tensors_of(tmp_path / "again"), wanted)


def text_head(encoder_class):
    """The base of heads over any encoder of one text, for this one."""
    return type("OfText", (of_text.TextHead,), {"encoder_class": encoder_class})


OWN_HEADS = {
    "longformer": (longformers, LongformerHead),
    "bigbird": (bigbirds, BigBirdHead),
    "modernbert": (modernberts, ModernBertHead),
    "longformer, any text": (longformers, text_head(etcmodel.LongformerModel)),
    "bigbird, any text": (bigbirds, text_head(etcmodel.BigBirdModel)),
}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("kind", OWN_HEADS)
def test_a_head_of_ones_own_keeps_its_names_where_hugging_face_has_none(
    monkeypatch, tmp_path, kind
):
    monkeypatch.setattr(heads.base, "_HEADS", heads.head_classes())
    small, base = OWN_HEADS[kind]

    @heads.register_head
    class Own(base):
        head_type = f"own_{kind}"

        def make_head(self):
            self.mine = self.token_logits(3, name="mine")
            self.theirs = self.token_logits(2, name="classifier")

        def head(self, hidden, other, training):
            return {"mine": self.mine(hidden), "theirs": self.theirs(hidden)}

        def default_loss(self):
            return {name: losses.MeanCrossentropy() for name in ("mine", "theirs")}

    model, ids = Own(small.config()), small.ids(9)
    model.save_pretrained(tmp_path)
    names = {"mine.weights", "mine.bias", "classifier.weight", "classifier.bias"}
    assert names == {x for x in tensors_of(tmp_path) if x.startswith(("mine", "classifier"))}
    loaded, wanted = etcmodel.from_pretrained(tmp_path), model(ids)
    assert type(loaded) is Own
    for name, logits in loaded(ids).items():
        np.testing.assert_array_equal(logits, wanted[name])
    rewrite(tmp_path, lambda tensors: tensors.pop("mine.bias"))
    with pytest.raises(ValueError, match="lacks weights of .*: mine.bias"):
        hugging_face.load(loaded, sources.open_source(str(tmp_path)))


def test_two_layers_of_a_head_never_share_a_name_in_a_file():
    class Twice(etcmodel.ModernBertForMaskedLM):
        head_type = "twice"

        def make_head(self):
            super().make_head()
            head = modernbert_modeling.PredictionHead(self.config, dtype="float32")
            self.prediction_head = self.built_on_hidden(head)

    model = Twice(modernberts.config())
    assert len(hugging_face.places(model)) == len(model.weights)
    assert {"head.dense.weight", "head.dense.kernel"} < set(hugging_face.places(model))


@pytest.mark.parametrize("small", [longformers, bigbirds, modernberts])
def test_a_head_of_another_system_is_refused(tmp_path, small):
    small.model().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="needs an encoder of a long and a global input, of"):
        etcmodel.from_pretrained(tmp_path, as_class=heads.EtcForTokenClassification)
    with pytest.raises(ValueError, match="^GmatForMaskedLM needs a GmatModel. Received: "):
        etcmodel.from_pretrained(tmp_path, as_class=etcmodel.GmatForMaskedLM)


@pytest.mark.parametrize(
    "made_by, small",
    [
        (etcmodel.LongformerForMaskedLM, longformers),
        (etcmodel.BigBirdForMaskedLM, bigbirds),
        (etcmodel.BigBirdForPreTraining, bigbirds),
        (modernbert_modeling.ModernBertForMaskedLM, modernberts),  # It has one.
    ],
)
def test_a_language_model_without_a_matrix_of_its_own_is_said_to_be_tied(made_by, small, tmp_path):
    # Else Hugging Face's library would add a matrix with random weights.
    model = made_by(small.config(tie_word_embeddings=False))
    etcmodel.save_pretrained(model, tmp_path / "model")
    entries = json.loads((tmp_path / "model" / "config.json").read_text())
    own = modernbert_modeling.ModernBertForMaskedLM
    assert entries["tie_word_embeddings"] is (made_by is not own)
