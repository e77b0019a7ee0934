"""As much of the program `ip`, and of `tc`, as a test of networks needs. Where Cria is built in a private tree, there is
neither of them."""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWNET = 0x40000000
REQUEST = 0x005  # NLM_F_REQUEST, NLM_F_ACK
CREATE = 0x605  # The same, with NLM_F_CREATE and NLM_F_EXCL.
IFF_UP = 1
ETHERTOOL = 0x8946  # SIOCETHTOOL


@contextlib.contextmanager
def network_of(pid):
    """Within it, this thread is in the network of a process."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(descriptor):
        if libc.setns(descriptor, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), 'setns')

    own = os.open('/proc/self/ns/net', os.O_RDONLY)
    other = os.open(f'/proc/{pid}/ns/net', os.O_RDONLY)
    try:
        enter(other)
        yield
    finally:
        enter(own)
        os.close(own)
        os.close(other)


def attribute(kind, payload):
    if isinstance(payload, str):
        payload = payload.encode() + b'\0'
    elif isinstance(payload, int):
        payload = struct.pack('=I', payload)
    size = 4 + len(payload)
    return struct.pack('=HH', size, kind) + payload + bytes(-size % 4)


def request(kind, flags, payload):
    """Sends it to the kernel, in the network of this thread. An error of the kernel is an OSError."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.bind((0, 0))
        kernel.send(struct.pack('=IHHII', 16 + len(payload), kind, flags, 1, 0) + payload)
        answer = kernel.recv(65536)
        (error,) = struct.unpack_from('=i', answer, 16)
        if error != 0:
            raise OSError(-error, os.strerror(-error))


def interface(index, flags=0, mask=0):
    """The structure ifinfomsg."""
    return struct.pack('=BxHiII', socket.AF_UNSPEC, 0, index, flags, mask)


def add_link(kind, name, data=b''):
    info = attribute(1, kind.encode()) + (attribute(2, data) if data else b'')
    request(16, CREATE, interface(0) + attribute(3, name) + attribute(18, info))


def add_pair(name, peer, peer_pid):
    """Two ends of a cable, of which the second is in the network of another process."""
    add_link('veth', name, attribute(1, interface(0) + attribute(3, peer) + attribute(19, peer_pid)))


def set_up(name, is_up=True):
    request(16, REQUEST, interface(socket.if_nametoindex(name), IFF_UP if is_up else 0, IFF_UP))


def move(name, pid):
    """Moves it into the network of another process."""
    request(16, REQUEST, interface(socket.if_nametoindex(name)) + attribute(19, pid))


def plug_into(name, bridge):
    request(16, REQUEST, interface(socket.if_nametoindex(name)) + attribute(10, socket.if_nametoindex(bridge)))


def add_address(name, address, bits=24):
    packed = socket.inet_aton(address)
    header = struct.pack('=BBBBi', socket.AF_INET, bits, 0, 0, socket.if_nametoindex(name))
    request(20, CREATE, header + attribute(2, packed) + attribute(1, packed))


def limit(name, bytes_per_second):
    """What leaves the interface has this rate (tbf); the kernel counts headers of Ethernet, too."""
    # A packet, or what passes in the 40 µs by which the kernel's timers may be late. With more, what a link has saved up
    # while it was idle would hide the latency of the next message.
    burst = max(1600, bytes_per_second * 4 // 100_000)
    queue = 8_000_000
    rate = struct.pack('=BBHhHI', 0, 1, 0, 0, 0, bytes_per_second)  # 1: Ethernet.
    parameters = rate + bytes(12) + struct.pack('=III', queue, 0, 0)
    options = attribute(1, parameters) + attribute(6, burst)
    header = struct.pack('=BxxxiIII', socket.AF_UNSPEC, socket.if_nametoindex(name), 0x10000, 0xFFFFFFFF, 0)
    request(36, CREATE, header + attribute(1, 'tbf') + attribute(2, options))


def send_small_packets(name):
    """Packets leave the interface as they are on a wire, so that its counters count their headers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in (0x1F, 0x24, 0x2C, 0x17):  # ETHTOOL_STSO, SGSO, SGRO, STXCSUM
            value = ctypes.create_string_buffer(struct.pack('=II', command, 0))
            argument = struct.pack('16sP', name.encode(), ctypes.addressof(value)) + bytes(16)
            with contextlib.suppress(OSError):  # Not every interface has each of them.
                fcntl.ioctl(any_socket, ETHERTOOL, argument)


def sent_and_received(pid, name):
    """Bytes that the interface in the network of a process has counted."""
    with open(f'/proc/{pid}/net/dev', encoding='ascii') as file:
        for line in file:
            if line.strip().startswith(name + ':'):
                fields = line.split(':')[1].split()
                return int(fields[8]), int(fields[0])
    raise OSError(f'there is no interface {name}')


def remove_link(name):
    request(17, REQUEST, interface(socket.if_nametoindex(name)))
