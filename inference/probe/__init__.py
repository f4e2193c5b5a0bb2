"""What this machine computes right, fast, and with the same bits: found out by trying, not by names."""
