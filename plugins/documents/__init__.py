"""Documents of strangers, each read and written in a process of its own, whose memory and time the system limits."""
