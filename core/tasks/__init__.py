"""What vectors are good for: tasks that score an encoder, defended or not."""
