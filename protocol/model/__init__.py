"""Estimate of the rows' distribution from all released tables: graphical model, rare categories, sampling."""
