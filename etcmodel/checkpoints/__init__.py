"""Loads, saves and converts checkpoints: the authors', this library's, Hugging Face's, BERT's."""

from etcmodel.checkpoints.conversion import convert, token_rows
from etcmodel.checkpoints.coverage import LoadReport, check_restored
from etcmodel.checkpoints.lifting import lift_bert
from etcmodel.checkpoints.lifting_bart import lift_bart
from etcmodel.checkpoints.lifting_gmat import lift_to_gmat
from etcmodel.checkpoints.lifting_modernbert import lift_modernbert
from etcmodel.checkpoints.lifting_roberta import copy_local_to_global, lift, lift_roberta
from etcmodel.checkpoints.names import release_names
from etcmodel.checkpoints.pretrained import from_pretrained, load_pretrained, save_pretrained
from etcmodel.checkpoints.released import initialize, load_released_checkpoint

__all__ = [
    "LoadReport",
    "check_restored",
    "convert",
    "copy_local_to_global",
    "from_pretrained",
    "initialize",
    "lift",
    "lift_bart",
    "lift_bert",
    "lift_modernbert",
    "lift_roberta",
    "lift_to_gmat",
    "load_pretrained",
    "load_released_checkpoint",
    "release_names",
    "save_pretrained",
    "token_rows",
]
