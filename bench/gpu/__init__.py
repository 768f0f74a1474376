"""Everything that is to be checked and measured on a machine with a GPU, in one call: `python -m bench.gpu`."""
