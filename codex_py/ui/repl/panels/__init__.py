"""What takes the place of the input for a while: questions, pickers, lists and pages, all in one style."""
