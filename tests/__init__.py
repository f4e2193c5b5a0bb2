"""Tests; a package so that its helpers (tiny_models and others) can be imported from any test."""
