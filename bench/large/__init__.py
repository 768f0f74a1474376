"""What a large model costs: disk, memory, the first answer, and speed beside CTranslate2: `python -m bench.large`."""
