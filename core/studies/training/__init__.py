"""Studies of private and adversarial training, and of networks under noise."""
