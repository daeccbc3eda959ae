"""Is it any good: cases, trials and scores of the rubric on recorded turns."""
