"""Pictures of a run: what is drawn, and two ways to draw it (plotly, and SVG without script)."""
