"""
Reports: what runs found, as a page, as Markdown and as JSON.
"""
