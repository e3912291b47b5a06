"""Files of users: storing, uploading, serving and deleting them."""
