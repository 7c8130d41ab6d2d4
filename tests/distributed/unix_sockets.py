"""A transport from outside of the package: Unix datagram sockets, one class in one file."""

import os
import socket
import tempfile

from modurob.distributed import Endpoint


class UnixSockets(Endpoint):
    """The socket of one module, a file in a directory of its own."""

    def open(self):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.bind(os.path.join(tempfile.mkdtemp(dir=os.environ["UNIX_SOCKETS"]), "s"))
        return sock
