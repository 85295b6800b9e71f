"""What users send under noise, and the networks that read it."""
