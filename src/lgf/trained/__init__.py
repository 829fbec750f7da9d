"""Trained models in folders, and the conditional flow of one."""
