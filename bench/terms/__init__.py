"""Terms that a translation has to hold: are they there, what does it cost, how good is it: `python -m bench.terms`."""
