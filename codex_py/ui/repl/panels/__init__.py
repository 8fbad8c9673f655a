"""What replaces the input for a while: questions, pickers, lists and pages, all in one style."""
