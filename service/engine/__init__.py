"""Engine threads: each drives a batch of slots, and decodes one token of every active slot in a step.

The scheduler decides in plain Python what is decoded next: the scheduler and the modules that it imports know no
threads, no sessions and no queue.
"""
