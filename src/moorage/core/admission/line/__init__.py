"""What operators do with single tickets of a line: move them, and force their grants."""
