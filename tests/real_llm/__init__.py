"""The LLM judge on a real server with a real, small model. Slow: only ``pytest -m real_llm`` runs them."""
