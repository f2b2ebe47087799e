"""Members and non-members: recording them after training and finding them again for the test."""
