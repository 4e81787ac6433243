"""Measures one Hugging Face model for `turns`, as `worker` does one of TensorFlow's.

Runs in an interpreter that has `torch` and `transformers`, and nothing of this package.
"""

import json
import sys

_VOCABULARY_SIZE = 30522


def make_model(kind, length, layers, hidden, batch=1):
    """A randomly initialized model of the kind, and its inputs at this length."""
    import torch
    import transformers

    sizes = {
        "hidden_size": hidden,
        "num_attention_heads": hidden // 64,
        "max_position_embeddings": length + 2,
    }
    of_bert = {
        "vocab_size": _VOCABULARY_SIZE,
        "num_hidden_layers": layers,
        "intermediate_size": 4 * hidden,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    tokens = torch.randint(3, _VOCABULARY_SIZE, (batch, length))
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    if kind == "longformer":
        config = transformers.LongformerConfig(**sizes, **of_bert, attention_window=512)
        global_attention = torch.zeros_like(tokens)
        global_attention[:, :64] = 1
        inputs["global_attention_mask"] = global_attention
        model = transformers.LongformerModel(config, add_pooling_layer=False)
    elif kind == "bigbird":
        config = transformers.BigBirdConfig(**sizes, **of_bert, attention_type="block_sparse")
        model = transformers.BigBirdModel(config, add_pooling_layer=False)
    elif kind == "modernbert":
        # Its base model has 22 layers where BERT's has 12, and gated units 1.5 times as wide as
        # the hidden size. Its own vocabulary stays, and no dropout is its default.
        layers, units = 22 * layers // 12, 3 * hidden // 2
        config = transformers.ModernBertConfig(
            **sizes, num_hidden_layers=layers, intermediate_size=units
        )
        model = transformers.ModernBertModel(config)
    else:
        config = transformers.BertConfig(**sizes, **of_bert)
        model = transformers.BertModel(config, add_pooling_layer=False)
        model.set_attn_implementation("sdpa")
    return model, inputs


def load_model(kind, folder, inputs):
    """The model of a folder, and inputs from an .npz file under the names of its arguments."""
    import numpy as np
    import torch
    import transformers

    model_class = {
        "stored_bigbird": transformers.BigBirdModel,
        "stored_longformer": transformers.LongformerModel,
        "stored_modernbert": transformers.ModernBertModel,
        "stored_led": transformers.LEDForConditionalGeneration,
        "stored_bigbird_pegasus": transformers.BigBirdPegasusForConditionalGeneration,
        "stored_longt5": transformers.LongT5ForConditionalGeneration,
        "stored_pegasus_x": transformers.PegasusXForConditionalGeneration,
    }[kind]
    has_pooler = kind in ("stored_bigbird", "stored_longformer")
    options = {"add_pooling_layer": False} if has_pooler else {}
    arrays = {name: torch.from_numpy(x.astype("int64")) for name, x in np.load(inputs).items()}
    if kind not in ("stored_longformer", "stored_led"):
        del arrays["global_attention_mask"]
    labels = arrays.pop("labels")
    if model_class.__name__.endswith("ForConditionalGeneration"):
        arrays["labels"] = labels
    return model_class.from_pretrained(folder, **options), arrays


def make_phases(model, inputs, output=None, generation=None):
    """dict of phases to functions: forward pass, training step, and what is written to `output`.

    Args:
        model: of Hugging Face's.
        inputs: dict of tensors.
        output: str or None. A .npy file for the last hidden state, or what was generated.
        generation: dict or None. Arguments of `generate`.
    """
    import numpy as np
    import torch

    labels = {"labels": inputs.pop("labels")} if "labels" in inputs else {}

    def forward():
        model.eval()
        with torch.no_grad():
            return model(**inputs).last_hidden_state.sum().item()

    def train():
        model.train()
        model.zero_grad()
        outputs = model(**inputs, **labels)
        (outputs.loss if labels else outputs.last_hidden_state.square().mean()).backward()

    def encode():
        model.eval()
        with torch.no_grad():
            return model.get_encoder()(**inputs).last_hidden_state.sum().item()

    def generate():
        model.eval()
        with torch.no_grad():
            return model.generate(**inputs, **generation)

    def write():
        model.eval()
        with torch.no_grad():
            result = generate() if generation else model(**inputs).last_hidden_state
        if not generation:
            result = result * inputs["attention_mask"][..., None]
        np.save(output, result.numpy())

    return {
        "forward": forward,
        "train": train,
        "encode": encode,
        "generate": generate,
        "write": write,
    }


def text_encoder_phases(folder, documents, max_length, batch_size, output):
    """dict of phases to functions: vectors of the texts of a file, by sentence-transformers.

    Args:
        folder: str.
        documents: str. JSON lines with a 'text' each.
        max_length: int. Tokens that texts are cut to.
        batch_size: int.
        output: str. A .npy file for the vectors.
    """
    import numpy as np
    import sentence_transformers

    with open(documents, encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    encoder = sentence_transformers.SentenceTransformer(folder, device="cpu")
    encoder.max_seq_length = max_length

    def encode():
        return encoder.encode(texts, batch_size=batch_size, show_progress_bar=False)

    return {"encode": encode, "write": lambda: np.save(output, encode())}


def product_phases(size, number):
    """dict of dtypes to functions of so many products of square matrices of this size."""
    import torch

    def phase(matrix):
        return lambda: [matrix @ matrix for _ in range(number)][-1][0, 0].item()

    matrix = torch.randn(size, size)
    return {"float32": phase(matrix), "bfloat16": phase(matrix.bfloat16())}


def main(argv):
    """Arguments: kind, then its settings as JSON."""
    import torch
    from turn_loop import serve  # Beside this script.

    kind, settings = argv[1], json.loads(argv[2])
    torch.set_num_threads(settings.pop("threads"))
    of_functions = {"text_encoder": text_encoder_phases, "products": product_phases}
    if kind in of_functions:
        serve(of_functions[kind](**settings))
        return
    options = {name: settings.pop(name, None) for name in ("output", "generation")}
    model, inputs = (load_model if "folder" in settings else make_model)(kind, **settings)
    serve(make_phases(model, inputs, **options))


if __name__ == "__main__":
    main(sys.argv)
