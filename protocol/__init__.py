"""The protocol: computations, messages, their order and their privacy price, without sockets, files or clocks."""
