"""What commands print: findings, progress, standard output, exit codes."""
