"""Results as Plotly figures, a file a subject: they compute nothing, and draw what is given."""
