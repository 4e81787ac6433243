"""Export to SavedModel, and prediction from one."""

from etcmodel.serving.export import export_saved_model
from etcmodel.serving.saved_model import SavedModelRunner

__all__ = ["SavedModelRunner", "export_saved_model"]
