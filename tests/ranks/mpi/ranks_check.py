#!/usr/bin/env python3
"""Checks `mpirun cria` on this machine: that several ranks say what one says, what they refuse, how they serve and wait,
and that they end when one of them is killed, stopped, hangs or loses its network at a random moment."""

import argparse
import os
import random
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from boards import enter_own_network
from cluster import Cluster, Failure
from faults import check_faults
from memory import check_memory
from network import check_network
from serving import check_serving
from texts import (check_chat, check_command_lines, check_failure, check_perplexity, check_refusals, check_sessions,
                   check_text)

SKIPPED = 77  # What ctest takes for it.


def check_commands(cluster):
    check_sessions(cluster)
    check_perplexity(cluster)
    check_command_lines(cluster)
    check_refusals(cluster)
    check_failure(cluster)
    print('ranks that wait in a chat take', check_chat(cluster), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cria', required=True, help='the program')
    parser.add_argument('--convert', required=True, help='the program cria-convert')
    parser.add_argument('--make-checkpoint', required=True, help='the program cria-make-checkpoint')
    parser.add_argument('--mpirun', default='mpirun', help="that of cria's MPI [%(default)s]")
    parser.add_argument('--emulator', default='', help='runs a cria-mpi of another processor, which --cria is then')
    parser.add_argument('--relay', help='the program cria-delay-relay, for the network')
    parser.add_argument('--only', action='append', choices=('text', 'commands', 'memory', 'serving', 'faults', 'network'),
                        help='check this alone; may be repeated, but not beside the network [all but the network]')
    parser.add_argument('--ranks', type=int, action='append',
                        help='of the network: count the bytes of so many ranks; may be repeated [2, 3, 4, 6]')
    parser.add_argument('--time', action='store_true',
                        help='of the network: also compare the time of a token with the prediction; nothing else may run')
    parser.add_argument('--trials', type=int, default=100, help='how many faults there are')
    parser.add_argument('--seed', type=int, default=1, help='of the faults')
    arguments = parser.parse_args()
    beside = os.path.join(os.path.dirname(os.path.abspath(arguments.cria)), 'cria-mpi')
    if not shutil.which(arguments.mpirun) or not os.path.exists(beside):
        print(f'skipped: there is no {arguments.mpirun}, or cria was built without MPI')
        return SKIPPED
    lack = enter_own_network()
    checks = {
        'text': check_text,
        'commands': check_commands,
        'memory': check_memory,
        'serving': lambda cluster: print('ranks that wait in a server take', check_serving(cluster), flush=True),
        'faults': lambda cluster: print(check_faults(cluster, arguments.trials, random.Random(arguments.seed), lack)),
    }
    with tempfile.TemporaryDirectory() as folder:
        try:
            if arguments.only == ['network']:
                if lack:
                    print(f'skipped: this system lets the test have no network of its own: {lack}')
                    return SKIPPED
                check_network(arguments, folder)
                return 0
            cluster = Cluster(arguments.cria, arguments.convert, arguments.make_checkpoint, folder, arguments.mpirun,
                              arguments.emulator)
            for name in arguments.only or checks:
                checks[name](cluster)
        except Failure as failure:
            print(f'FAILED: {failure}', file=sys.stderr)
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
