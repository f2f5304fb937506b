"""Stored rows to tables, figures and one page. Nothing here simulates."""
