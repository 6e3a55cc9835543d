"""Graph patterns compiled to operators over rows of term numbers."""
