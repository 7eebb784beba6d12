"""TCP ports of the loopback that are free now."""

import socket


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def free_port():
    return free_ports(1)[0]
