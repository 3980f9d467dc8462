"""The estimate from all released tables: graphical model, rare categories, sampling."""
