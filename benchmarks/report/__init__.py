"""What a run found: targets, stored results, the chart."""
