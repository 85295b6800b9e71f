"""Write the documentation's measured numbers from the result files."""
