"""Layer 1, second half: may this tool be used with these arguments? (text 002 §15)."""
