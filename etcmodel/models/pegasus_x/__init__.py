"""PEGASUS-X (Phang et al. 2022): staggered chunks and global tokens, and PEGASUS's decoder.

The names here are imported at first use.
"""

from etcmodel import lazy_imports

_HOMES = {
    "PegasusXConfig": "etcmodel.models.pegasus_x.config",
    "PegasusXEncoder": "etcmodel.models.pegasus_x.encoder",
    "PegasusXForConditionalGeneration": "etcmodel.models.pegasus_x.generation",
    "PegasusXModel": "etcmodel.models.pegasus_x.model",
}

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
