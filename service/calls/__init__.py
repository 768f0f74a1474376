"""One call: its texts, their turns on the event loop, and their results; knows no protocol."""
