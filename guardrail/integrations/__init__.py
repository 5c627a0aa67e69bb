"""The guard inside the gateways and frameworks of others. A module is imported only by who uses that one."""
