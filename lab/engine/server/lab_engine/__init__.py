"""What the two recorded engines have in common, imitated for the lab. A test double: no model, no GPU."""
