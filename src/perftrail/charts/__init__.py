"""Results drawn: each module turns one kind of result into a Vega-Lite specification, a plain dict. Pure."""
