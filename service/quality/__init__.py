"""How good a translation probably is: what can be counted of it, and what was learnt of that; knows no calls."""
