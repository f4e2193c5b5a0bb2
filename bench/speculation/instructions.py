"""Instructions whose answers have nothing to copy from: speculation must not cost anything there."""

from __future__ import annotations

INSTRUCTIONS = (
    "Write a short story about a lighthouse keeper who finds an old map.",
    "Write a Python function that returns the first n prime numbers.",
    "Explain to a child why the sky is blue in the day and red in the evening.",
    "Write a Go program that counts the words of a text on its standard input.",
    "Describe the taste of coffee to somebody who has never had any.",
    "Write a JavaScript class for a stack of numbers with a method that returns the largest one.",
    "Give five ideas for a garden party on a rainy afternoon.",
    "Write a Rust function that converts a temperature from Celsius to Fahrenheit and handles bad input.",
    "Write a letter to a neighbour who plays the trumpet at night.",
    "Write an SQL schema for a library that lends books to its members.",
    "Tell the history of the bicycle in a few sentences.",
    "Write a C function that finds the middle node of a linked list.",
)
