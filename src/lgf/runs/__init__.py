"""A request, its run, and the folder that holds it."""
