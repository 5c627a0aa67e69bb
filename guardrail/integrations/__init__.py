"""The guard inside the gateways and frameworks of others. Each module is imported only by who uses that one."""
