"""Multi-class boosting with costs: decisions whose mistakes have different prices."""
