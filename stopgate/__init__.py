"""The hook: the only folder that knows Claude Code's formats."""
