"""Training utilities: the resumable loop, devices, DP-SGD and its accounting."""
