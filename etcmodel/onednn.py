"""Computes by oneDNN where TensorFlow can.

TensorFlow turns it on by itself only on processors with certain instructions. On others, such as
those with AVX2 alone, products of matrices are slower without it. TensorFlow is not needed.
"""

import os
import platform
import sys

from etcmodel import posix_only

VARIABLE = "TF_ENABLE_ONEDNN_OPTS"
# Those that products of matrices use, as Linux names them.
_INSTRUCTIONS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")


def prefer():
    """Turns oneDNN on, unless the user has chosen, or TensorFlow is imported already.

    TensorFlow reads the variable when it is imported; other processors than x86 ignore it.

    >>> from etcmodel import onednn
    >>> onednn.prefer(), onednn.VARIABLE
    (None, 'TF_ENABLE_ONEDNN_OPTS')
    """
    if "tensorflow" not in sys.modules and platform.machine() in ("x86_64", "AMD64"):
        os.environ.setdefault(VARIABLE, "1")


def instructions():
    """Returns the names of the processor's instructions for products: tuple of str.

    It is empty where they are not known, as on other systems than Linux.
    """
    flags = posix_only.processor_flags()
    return tuple(name for name in _INSTRUCTIONS if name in flags)
