"""What one model call is sent when the whole history does not fit, and why."""
