"""The trade-off study: what each defence costs, and how much leakage it prevents."""
