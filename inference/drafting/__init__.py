"""Drafters guess the next tokens; the target model verifies them."""
