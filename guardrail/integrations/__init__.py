"""The guard inside the gateways of others. Nothing here is imported but by who uses that gateway."""
