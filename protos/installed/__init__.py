"""What is installed here: metadata of packages, which of them do not fit, which release of the product this is, and
modules that are loaded late."""
