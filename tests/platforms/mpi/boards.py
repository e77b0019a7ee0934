"""Boards with a network of their own each, all on one switch: namespaces of the kernel."""

import os
import subprocess

import netlink


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

    def close(self):
        if self.relay:
            self.relay.kill()
            self.relay.wait()
        else:
            for number in range(len(self.boards)):
                netlink.remove_link(f'port{number}')
        for board in self.boards:
            board.process.kill()
            board.process.wait()
        netlink.remove_link('switch')
