"""Every table and view of the warehouse, declared once."""
