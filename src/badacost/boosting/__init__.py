"""Rounds of boosting: reweighting (BAdaCost and its relatives), softmax boosting with folds."""
