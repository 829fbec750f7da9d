"""Many records at once: each is answered in a run folder of its own, and one table holds all answers."""
