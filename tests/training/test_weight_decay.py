"""Which weights decay, over all models: none of a normalization, no bias, and all others."""

import re

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import etcmodel
from etcmodel import models, training
from etcmodel.layers.normalization import RmsNormalization
from etcmodel.models import modeling
from etcmodel.pretrain.model import PretrainModel
from etcmodel.tasks.hotpotqa.model import HotpotQaModel
from etcmodel.tasks.nq.model import NqModel
from etcmodel.tasks.openkp.model import OpenKpModel
from etcmodel.tasks.wikihop.model import WikiHopModel
from etcmodel.training import optimizer as optimizer_lib
from tests.models import head_cases
from tests.models.gmat import genbert
from tests.models.gmat import small as gmats
from tests.models.led import models as leds
from tests.models.longformer import small as longformers
from tests.models.longformer_char_lm import char_models
from tests.models.longt5 import models as longt5s
from tests.models.modernbert import small as modernberts
from tests.models.pegasus_x import models as pegasus_xs

FORMER = re.compile("layer_norm|LayerNorm|bias")  # By their names alone; of ETC that was enough.
ETC_CONFIG = modeling.EtcConfig(
    vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
)
ETC = {
    **{
        case: lambda case=case: head_cases.make(case)
        for case in ("candidates", "masked", "phrases")
    },
    **{
        made_by.__name__: lambda made_by=made_by: _built(made_by(ETC_CONFIG))
        for made_by in (HotpotQaModel, NqModel, OpenKpModel, PretrainModel, WikiHopModel)
    },
}
OTHERS = {
    "gmat": lambda: models.GmatForMaskedLM(gmats.config(num_hidden_layers=1, **gmats.OWN)),
    "gmat_seq2seq": lambda: genbert.model(num_hidden_layers=1),
    "led": leds.model,
    "longformer": lambda: models.LongformerForMaskedLM(longformers.config()),
    "longformer_char_lm": char_models.model,
    "longt5": longt5s.model,
    "modernbert": lambda: etcmodel.ModernBertForMaskedLM(modernberts.config(attention_bias=True)),
    "pegasus_x": pegasus_xs.model,
}


def _built(model):
    model.build()
    return model


def decaying(model):
    """The names of the weights that a step without gradients moves."""
    variables = model.trainable_variables
    for variable in variables:
        variable.assign(tf.ones_like(variable))
    config = training.TrainingConfig(weight_decay_rate=0.1)
    optimizer = optimizer_lib.build_optimizer(config, 0.5)
    pairs = [(tf.zeros_like(variable), variable) for variable in variables]
    optimizer.apply_gradients(pairs, experimental_aggregate_gradients=False)
    return {x.name for x in variables if not np.array_equal(x, np.ones(x.shape))}


def of_normalizations(model):
    layers = (tf_keras.layers.LayerNormalization, RmsNormalization)
    return {x.name for part in model.submodules if isinstance(part, layers) for x in part.weights}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", OTHERS)
def test_scales_offsets_and_biases_alone_do_not_decay(name):
    model = OTHERS[name]()
    norms, moved = of_normalizations(model), decaying(model)
    names = {x.name for x in model.trainable_variables}
    assert norms and norms <= names
    assert names - moved == norms | {x for x in names if "bias" in x}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", ETC)
def test_of_etc_the_same_decay_as_ever(name):
    model = ETC[name]()
    names = {x.name for x in model.trainable_variables}
    assert decaying(model) == {x for x in names if not FORMER.search(x)}
    assert of_normalizations(model).isdisjoint(decaying(model))
