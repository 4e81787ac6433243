"""Fine-tunes, evaluates, exports and runs models that summarize texts.

They are LED, LongT5, PEGASUS-X and BigBird-Pegasus.

Modes: `train` writes checkpoints to --output_dir (and evaluates them if --eval_data is given);
`evaluate` prints the ROUGE scores of the best checkpoint; `predict_records` writes its summaries;
`export` writes it as a SavedModel; `predict` summarizes raw documents with an exported model. If
stopped, `evaluate`, `predict_records` and `predict` resume where they left off.
"""

from etcmodel import finetuning

from .config import SummarizationConfig

if __name__ == "__main__":
    finetuning.run_program(SummarizationConfig)
