"""Guards, brokers and connections that die at every moment, and a checker of what readers saw of it."""
