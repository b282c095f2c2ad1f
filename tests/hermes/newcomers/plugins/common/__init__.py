"""What my plugins share."""
