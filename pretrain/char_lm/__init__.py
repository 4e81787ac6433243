"""Character language models, trained in phases (Beltagy et al. 2020, section 4)."""
