"""Extended Transformer Construction (ETC) for TensorFlow 2: long and structured inputs.

`etcmodel.EtcConfig`, `etcmodel.EtcModel` and `etcmodel.load_pretrained` are imported at first use,
so that programs which only prepare data do not wait for TensorFlow.
"""

import importlib

__all__ = ["EtcConfig", "EtcModel", "load_pretrained"]
__version__ = "0.1.0"

_HOMES = {
    "EtcConfig": "etcmodel.models.modeling",
    "EtcModel": "etcmodel.models.modeling",
    "load_pretrained": "etcmodel.checkpoints",
}


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'etcmodel' has no attribute {name!r}")
