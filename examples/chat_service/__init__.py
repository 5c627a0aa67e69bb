"""A chat service in front of the guard, with a page in the browser: ``python -m examples.chat_service``."""
