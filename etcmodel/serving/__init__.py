"""Exports SavedModels that take features or strings or generate sequences, and runs them."""

from etcmodel import lazy_imports

# Exports that take strings need tensorflow-text.
_HOMES = {
    "GenerationRunner": "generation",
    "SavedModelRunner": "saved_model",
    "export_generation": "generation",
    "export_onnx": "onnx_file",
    "export_saved_model": "export",
    "export_stablehlo": "stablehlo",
    "export_text_generation": "etcmodel.serving.text.generation",
    "export_text_model": "etcmodel.serving.text.export",
}

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__ = lazy_imports.attributes(__name__, _HOMES)
