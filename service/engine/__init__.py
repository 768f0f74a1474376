"""Threads that each drive a batch of slots, a token of every slot a step."""
