"""What is installed here: metadata of packages, which of them do not fit, and which release of the product this is."""
