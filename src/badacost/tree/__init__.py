"""The weak learner: binning, histograms, one cost-sensitive tree, and forests of flat arrays."""
