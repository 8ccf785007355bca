"""The contracts between the rooms: messages (*.proto), and trace records (records.py)."""
