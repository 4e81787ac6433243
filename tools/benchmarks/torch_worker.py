"""Measures one Hugging Face model for `benchmark`, as `worker` does one of TensorFlow's.

Runs in an interpreter that has `torch` and `transformers`, and nothing of this package.
"""

import json
import resource
import sys
import time

_VOCABULARY_SIZE = 30522


def make_model(kind, length, layers, hidden):
    """A randomly initialized model of the kind, and its inputs at this length."""
    import torch
    import transformers

    sizes = {
        "vocab_size": _VOCABULARY_SIZE,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // 64,
        "intermediate_size": 4 * hidden,
        "max_position_embeddings": length + 2,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    tokens = torch.randint(3, _VOCABULARY_SIZE, (1, length))
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    if kind == "longformer":
        config = transformers.LongformerConfig(**sizes, attention_window=512)
        global_attention = torch.zeros_like(tokens)
        global_attention[:, :64] = 1
        inputs["global_attention_mask"] = global_attention
        model = transformers.LongformerModel(config, add_pooling_layer=False)
    elif kind == "bigbird":
        config = transformers.BigBirdConfig(**sizes, attention_type="block_sparse")
        model = transformers.BigBirdModel(config, add_pooling_layer=False)
    else:
        config = transformers.BertConfig(**sizes)
        model = transformers.BertModel(config, add_pooling_layer=False)
        model.set_attn_implementation("sdpa")
    return model, inputs


def main(argv):
    """Arguments: kind, then as numbers length, threads, layers, hidden size."""
    import torch

    kind, (length, threads, layers, hidden) = argv[1], map(int, argv[2:])
    torch.set_num_threads(threads)
    model, inputs = make_model(kind, length, layers, hidden)

    def forward():
        model.eval()
        with torch.no_grad():
            return model(**inputs).last_hidden_state.sum().item()

    def train():
        model.train()
        model.zero_grad()
        model(**inputs).last_hidden_state.square().mean().backward()

    phases = {"forward": forward, "train": train}
    for line in sys.stdin:
        run = phases[json.loads(line)]
        start = time.perf_counter()
        run()
        answer = {
            "seconds": time.perf_counter() - start,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv)
