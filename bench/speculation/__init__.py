"""What speculation brings and costs: interleaved decoding of the same prompts, and the machine's floors."""
