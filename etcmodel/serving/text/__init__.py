"""Models that take strings, with tokenizer, structure, windows and decoding in the graph."""

from etcmodel import lazy_imports

_HOMES = {"export_text_generation": "generation", "export_text_model": "export"}

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
