"""How much memory a process holds, and how that changes. Linux only."""
