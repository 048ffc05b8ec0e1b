"""SAFE: when to ensemble. Models with different tokenizers write one answer together."""
