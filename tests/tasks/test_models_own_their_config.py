"""Every task's model keeps the config that it was made of, whatever becomes of the caller's."""

import dataclasses

import pytest

from etcmodel.models import modeling
from etcmodel.pretrain.model import PretrainModel
from etcmodel.tasks.hotpotqa.model import HotpotQaModel
from etcmodel.tasks.nq.model import NqModel
from etcmodel.tasks.openkp.model import OpenKpModel
from etcmodel.tasks.wikihop.model import WikiHopModel

MODELS = (HotpotQaModel, NqModel, OpenKpModel, PretrainModel, WikiHopModel)
CONFIG = modeling.EtcConfig(
    vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
)


@pytest.mark.parametrize("model_class", MODELS, ids=lambda cls: cls.__name__)
def test_later_changes_do_not_reach_the_model(model_class):
    config = dataclasses.replace(CONFIG)
    model = model_class(config)
    config.hidden_size, config.relative_pos_max_distance = 16, 3
    assert model.encoder_config == model.etc_model.config == CONFIG
