"""Training, whatever learns: the resumable loop, the device it runs on, the record it leaves."""
