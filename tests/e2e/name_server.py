"""A DNS server on loopback whose answers a test changes, as a cluster changes those of a service."""

from dnslib import QTYPE, RR, A, DNSRecord
from dnslib.server import BaseResolver, DNSHandler, DNSLogger, DNSServer


class NameServer(BaseResolver):
    """Answers every name with the same IPv4 addresses, which nobody may keep.

    Attributes:
        hosts: the addresses.
        port: of 127.0.0.1, where it answers.
    """

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self._dns = DNSServer(self, "127.0.0.1", 0, logger=DNSLogger(logf=lambda line: None))
        self.port = self._dns.server.server_address[1]

    def __enter__(self) -> "NameServer":
        self._dns.start_thread()
        return self

    def __exit__(self, *_: object) -> None:
        self._dns.stop()
        self._dns.server.server_close()

    def resolve(self, request: DNSRecord, handler: DNSHandler) -> DNSRecord:
        reply = request.reply()
        if request.q.qtype == QTYPE.A:
            for host in self.hosts:
                reply.add_answer(RR(request.q.qname, QTYPE.A, ttl=0, rdata=A(host)))
        return reply
