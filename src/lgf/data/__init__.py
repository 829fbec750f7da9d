"""What was measured, what is known, and the smooth record made from it."""
