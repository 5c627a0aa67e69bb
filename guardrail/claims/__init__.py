"""Text to segments to claims: where the stream is cut, what needs checking, what a mistake would cost."""
