"""What Nexo knows about chat, without any I/O: the model, who may do what, who may see what."""
