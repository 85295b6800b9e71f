"""The study of memorised canaries."""
