"""The sizes of tiny encoder-decoders of BART's family."""

VOCAB_SIZE = 30
SIZES = {
    "vocab_size": VOCAB_SIZE,
    "d_model": 16,
    "encoder_layers": 2,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 20,
    "dropout": 0.0,
}
