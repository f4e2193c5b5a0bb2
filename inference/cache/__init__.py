"""Key/value buffers and the choice of the slot to reuse."""
