"""From the command line to a finished folder: the only place where decoding (safe) and scoring (eval) meet."""
