"""Where the time of a graph goes, beside what the machine could do: `dragoman bench roofline`."""
