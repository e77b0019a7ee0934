"""Boards with a network of their own each, all on one switch: namespaces of the kernel."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

import netlink
from cluster import descendants

OWN_NETWORK = 'CRIA_OWN_NETWORK'  # A variable of the environment.


def enter_own_network():
    """Starts this program again in a network of its own, in which it may make boards. Returns what the system lacks for
    that, or nothing in the program that was started again."""
    if not os.environ.get(OWN_NETWORK):
        words = ['unshare', '--user', '--map-root-user', '--net']
        tried = subprocess.run([*words, 'true'], check=False, capture_output=True, text=True)
        if tried.returncode != 0:
            return tried.stderr.strip()
        os.environ[OWN_NETWORK] = '1'
        os.execvp(words[0], words + sys.argv)
    netlink.set_up('lo')
    try:
        with open('/dev/net/tun', 'rb'):
            pass
        netlink.add_link('bridge', 'tried')
        netlink.limit('tried', 1_000_000)
        netlink.remove_link('tried')
        netlink.add_link('veth', 'tried')
        netlink.remove_link('tried')
    except OSError as error:
        return f'bridges, veth, tbf or TUN devices: {error}'
    # Daemons of mpirun on other boards become children of this process, which can then end them.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    return ''


class Board:
    """A process that does nothing, but has a network and a host name."""

    def __init__(self, number):
        self.name = f'board{number}'
        self.address = f'10.77.0.{number + 1}'
        self.process = subprocess.Popen(
            ['unshare', '--net', '--uts', 'sh', '-c',
             f'echo {self.name} >/proc/sys/kernel/hostname && echo && exec sleep infinity'],
            stdout=subprocess.PIPE)
        self.process.stdout.readline()

    @property
    def pid(self):
        return self.process.pid

    def inside(self):
        """The beginning of a command that runs on the board."""
        return ['nsenter', f'--net=/proc/{self.pid}/ns/net', f'--uts=/proc/{self.pid}/ns/uts']

    def counters(self):
        return netlink.sent_and_received(self.pid, 'eth0')

    def close(self):
        """With all processes on it."""
        network = os.stat(f'/proc/{self.pid}/ns/net').st_ino
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                if os.stat(f'/proc/{pid}/ns/net').st_ino == network:
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def cut(self):
        with netlink.network_of(self.pid):
            netlink.set_up('eth0', False)


class Boards:
    """So many of them, whose links have this bandwidth in each direction, and so many seconds until what one board sends
    comes out at the switch."""

    def __init__(self, count, folder, megabits=None, delay=0.0, relay=None):
        self.boards = [Board(number) for number in range(count)]
        self.relay = None
        netlink.add_link('bridge', 'switch')
        netlink.set_up('switch')
        for number, board in enumerate(self.boards):
            if not delay:
                netlink.add_pair(f'port{number}', 'eth0', board.pid)
        if delay:
            self.relay = self.start_relay(relay, delay)
        for number, board in enumerate(self.boards):
            self.connect(number, board, megabits)
        self.agent = self.write_agent(folder)
        self.hostfile = os.path.join(folder, 'boards')
        with open(self.hostfile, 'w', encoding='ascii') as file:
            file.writelines(f'{board.address} slots=1\n' for board in self.boards)

    def start_relay(self, program, delay):
        """It makes the interfaces, and passes on what comes from one of a link to the other."""
        process = subprocess.Popen([program, str(round(delay * 1e6)), *(str(board.pid) for board in self.boards)],
                                   stdout=subprocess.PIPE, text=True)
        if process.stdout.readline() != 'ready\n':
            raise OSError('the relay does not start')
        return process

    @staticmethod
    def connect(number, board, megabits):
        port = f'port{number}'
        netlink.plug_into(port, 'switch')
        ends = [port]
        with netlink.network_of(board.pid):
            netlink.add_address('eth0', board.address)
            Boards.start_end('eth0', megabits)
            netlink.set_up('lo')
        Boards.start_end(port, megabits)
        return ends

    @staticmethod
    def start_end(name, megabits):
        netlink.send_small_packets(name)
        if megabits:
            netlink.limit(name, round(megabits * 1e6 / 8))
        netlink.set_up(name)

    def write_agent(self, folder):
        """What mpirun starts instead of ssh."""
        path = os.path.join(folder, 'agent.sh')
        with open(path, 'w', encoding='ascii') as file:
            file.write('#!/bin/sh\nhost=$1\nshift\ncase $host in\n')
            for board in self.boards:
                file.write(f'{board.address}) exec {" ".join(board.inside())} sh -c "$*" ;;\n')
            file.write('esac\nexit 1\n')
        os.chmod(path, 0o755)
        return path

    def command(self, mpirun):
        """A command of Cluster.mpirun, which starts on the first board, with a rank on each."""
        return [*self.boards[0].inside(), *mpirun[:1], '--hostfile', self.hostfile, '--bind-to', 'none', *mpirun[1:]]

    def environment(self):
        # Names of OpenMPI 5, and of 4.
        return {'PRTE_MCA_plm_ssh_agent': self.agent, 'OMPI_MCA_plm_rsh_agent': self.agent,
                'PRTE_MCA_prte_if_include': 'eth0', 'OMPI_MCA_pml': 'ob1', 'OMPI_MCA_btl': 'self,tcp',
                'OMPI_MCA_btl_tcp_if_include': 'eth0'}

    def close(self):
        if self.relay:
            self.relay.kill()
            self.relay.wait()
        else:
            for number in range(len(self.boards)):
                netlink.remove_link(f'port{number}')
        for board in self.boards:
            board.close()
        netlink.remove_link('switch')
