"""Pre-training: masked language model and contrastive predictive coding (paper, section 3.5)."""
