"""Problems that stress a policy where the paper's settings do not (as `accrual.gallery`)."""
