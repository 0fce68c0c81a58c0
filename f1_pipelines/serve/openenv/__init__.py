"""The race engineer's environment as OpenEnv serves it: server side and typed client."""
