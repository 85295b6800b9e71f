"""The Streamlit frame around the engine: what all pages share. Start with app.py."""

import logging

# Loaders are declared before the server runs, which Streamlit warns of once for each of them.
logging.getLogger("streamlit.runtime.caching.cache_data_api").addFilter(
    lambda record: "No runtime found" not in record.getMessage()
)
