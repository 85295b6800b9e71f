"""The Streamlit frame around the engine: what all pages share. Start with app.py."""
