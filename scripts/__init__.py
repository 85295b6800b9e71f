"""Scripts that build the shipped assets: run each as `python -m scripts.NAME`."""
