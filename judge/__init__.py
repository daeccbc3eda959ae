"""Asking: from a turn to a judgement, through a model back end, within one deadline."""
