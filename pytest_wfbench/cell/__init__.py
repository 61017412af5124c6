"""One cell: the order of its sessions, verify and oracle, and the row that comes of them."""
