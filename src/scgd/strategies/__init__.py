"""Strategies: generators that yield points and are sent their values."""
