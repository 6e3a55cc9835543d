"""What a program does and what a run has done so far, as text, data and pictures."""
