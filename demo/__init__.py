"""A toy world, two small models trained in it, and what ensembling does to them: the paper's table on a laptop."""
