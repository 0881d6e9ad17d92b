"""What every measurement needs: interleaved rounds, child processes, the machine."""
