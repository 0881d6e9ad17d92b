"""The options: their texts, their values, and the filters of captured tables and columns."""
