"""Sessions that the model starts in the background."""
