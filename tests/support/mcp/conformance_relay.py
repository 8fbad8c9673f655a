"""What the conformance scenarios start: hands what they give to the client in the test, and ends as that does.

It is a program of its own because they start one, and a small one because loading the client takes a second.
"""

from __future__ import annotations

import json
import os
import socket
import sys

result = {name: value for name, value in os.environ.items() if name.startswith("MCP_CONFORMANCE_")}
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as door:
    door.sendall(json.dumps([sys.argv[-1], result]).encode() + b"\n")
    with door.makefile("rb") as reply:
        failure = reply.read()
sys.exit(failure.decode() or None)
