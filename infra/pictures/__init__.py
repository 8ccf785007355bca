"""The pictures of the docs, and the browser that shows pages for them and for tests."""
