"""Threads that each drive a batch of slots, a token of every slot a step.

What is decoded next, and with what, is decided in plain Python: the scheduler and what it needs know no threads, no
sessions and no queue.
"""
