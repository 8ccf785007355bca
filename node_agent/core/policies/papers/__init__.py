"""The policies of the four papers that no plan gets by itself; loaded when one names them."""
