"""Extended Transformer Construction (ETC) for TensorFlow 2: long and structured inputs."""
