"""Reads a batch's changes as Arrow: directly, or collected from Spark."""
