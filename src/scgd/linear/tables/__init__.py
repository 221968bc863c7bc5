"""Files of data as people have them: read, prepared for a linear model, fitted and predicted."""
