"""Parts that several pages show: controls, charts, messages, links."""
