"""Pre-training: masked language modeling, contrastive predictive coding (paper, section 3.5)."""
