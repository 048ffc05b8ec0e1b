"""The benchmarks: rows become checked examples, examples become the prompts of the experiment."""
