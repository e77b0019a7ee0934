#!/usr/bin/env python3
"""Checks `mpirun cria` on this machine: that several ranks say what one says, what they refuse, how they serve and wait,
and that they end when one of them is killed, stopped or hangs at a random moment."""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from cluster import Cluster, Failure
from faults import check_faults
from memory import check_memory
from serving import check_serving
from texts import check_chat, check_perplexity, check_refusals, check_sessions, check_text


def check_commands(cluster):
    check_text(cluster)
    check_sessions(cluster)
    check_perplexity(cluster)
    check_refusals(cluster)
    print('ranks that wait in a chat take', check_chat(cluster), flush=True)


def check_network(arguments):
    """In a network of its own, which ends with it."""
    words = ['unshare', '--user', '--map-root-user', '--net']
    if not arguments.relay or subprocess.run([*words, 'true'], check=False).returncode != 0:
        print('skipped: this system lets the test have no network of its own')
        return 77
    here = os.path.dirname(os.path.abspath(__file__))
    words += [os.path.join(here, 'network_check.py'), '--cria', arguments.cria, '--convert', arguments.convert,
              '--make-checkpoint', arguments.make_checkpoint, '--relay', arguments.relay]
    for ranks in arguments.ranks or ():
        words += ['--ranks', str(ranks)]
    return subprocess.run(words + (['--time'] if arguments.time else []), check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cria', required=True, help='the program')
    parser.add_argument('--convert', required=True, help='the program cria-convert')
    parser.add_argument('--make-checkpoint', required=True, help='the program cria-make-checkpoint')
    parser.add_argument('--relay', help='the program cria-delay-relay, for the network')
    parser.add_argument('--only', action='append', choices=('commands', 'memory', 'serving', 'faults', 'network'),
                        help='check this alone; may be repeated, but not beside the network [all but the network]')
    parser.add_argument('--ranks', type=int, action='append',
                        help='of the network: count the bytes of so many ranks; may be repeated [2, 3, 4, 6]')
    parser.add_argument('--time', action='store_true',
                        help='of the network: also compare the time of a token with the prediction; nothing else may run')
    parser.add_argument('--trials', type=int, default=100, help='how many faults there are')
    parser.add_argument('--seed', type=int, default=1, help='of the faults')
    arguments = parser.parse_args()
    beside = os.path.join(os.path.dirname(os.path.abspath(arguments.cria)), 'cria-mpi')
    if not shutil.which('mpirun') or not os.path.exists(beside):
        print('skipped: there is no mpirun, or cria was built without MPI')
        return 77
    checks = {
        'commands': check_commands,
        'memory': check_memory,
        'serving': lambda cluster: print('ranks that wait in a server take', check_serving(cluster), flush=True),
        'faults': lambda cluster: print(check_faults(cluster, arguments.trials, random.Random(arguments.seed))),
    }
    if arguments.only == ['network']:
        return check_network(arguments)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(arguments.cria, arguments.convert, arguments.make_checkpoint, folder)
        try:
            for name in arguments.only or checks:
                checks[name](cluster)
        except Failure as failure:
            print(f'FAILED: {failure}', file=sys.stderr)
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
