"""A batch's changes as Arrow: read directly, or collected from Spark."""
