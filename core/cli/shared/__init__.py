"""Arguments and output that several commands share."""
