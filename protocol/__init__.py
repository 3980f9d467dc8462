"""What is computed and said, in which order, at what privacy price. It does not know sockets, files or clocks."""
