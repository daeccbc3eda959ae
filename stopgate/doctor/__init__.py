"""Whether the gate works here: each check says one line, and how to put right what it found."""
