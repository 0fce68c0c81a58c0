"""Declarations of all tables and views of the warehouse."""
