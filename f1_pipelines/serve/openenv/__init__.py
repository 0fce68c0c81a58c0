"""The race engineer's environment for OpenEnv: server side and typed client."""
