"""Starts `mpirun cria` on this machine and looks at the processes of its ranks. What the checks of ranks share."""

import contextlib
import os
import re
import subprocess
import time

PROMPT = 'Once upon a time'
SILENCE = 3  # Seconds without a sign of life, for --rank-timeout.
START = 8  # Seconds, for --rank-start.
EMULATED = 10  # How many times as long emulated ranks may take for both.
WAITS = 4.0  # Seconds in which waiting ranks are measured.


class Failure(Exception):
    pass


def expect(condition, text, *outputs):
    if not condition:
        raise Failure('\n'.join([text, *outputs]))


class Cluster:
    """The programs, and the test models of random weights in two schemes, with four query heads."""

    def __init__(self, cria, convert, make_checkpoint, folder, mpirun='mpirun', emulator=''):
        self.cria = self.emulated(cria, emulator, folder) if emulator else os.path.abspath(cria)
        self.convert = convert
        self.make_checkpoint = make_checkpoint
        self.folder = folder
        version = subprocess.run([mpirun, '--version'], capture_output=True, text=True, check=False).stdout
        self.is_mpich = 'Open MPI' not in version
        self.starter = [mpirun, *starting_options(version)]
        self.patience = EMULATED if emulator else 1
        checkpoint = self.checkpoint('--shape', 'Gqa')
        self.models = {scheme: self.model(checkpoint, scheme) for scheme in ('f32', 'int8')}

    @staticmethod
    def emulated(cria, emulator, folder):
        """A program for another processor as one for this processor."""
        path = os.path.join(folder, 'cria')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\nexec {emulator} {os.path.abspath(cria)} "$@"\n')
        os.chmod(path, 0o755)
        return path

    def checkpoint(self, *arguments):
        path = os.path.join(self.folder, 'checkpoint' + '-'.join(arguments).replace('/', '_'))
        subprocess.run([self.make_checkpoint, '-o', path, *arguments], check=True, capture_output=True)
        return path

    def model(self, checkpoint, scheme):
        path = f'{checkpoint}.{scheme}.cria'
        subprocess.run([self.convert, '--fast', checkpoint, '-o', path, '--weights', scheme, '--no-verify'], check=True,
                       capture_output=True)
        return path

    def environment(self):
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',
                   PRTE_ALLOW_RUN_AS_ROOT='1', PRTE_ALLOW_RUN_AS_ROOT_CONFIRM='1',
                   CRIA_PACK_CACHE=os.path.join(self.folder, 'packed'))
        # One machine needs no network.
        env.setdefault('OMPI_MCA_btl', 'self,sm')
        # PMIx would share memory with pointers in it, which mean something else to an emulated process.
        env.setdefault('PMIX_MCA_gds', 'hash')
        return env

    def mpirun(self, ranks, *arguments, options=(), program=None):
        return [*self.starter, '-np', str(ranks), *options, *(program or [self.cria]), '--rank-timeout',
                str(SILENCE * self.patience), '--rank-start', str(START * self.patience), *arguments]

    def run(self, command, timeout=120, **options):
        return subprocess.run(command, env=self.environment(), timeout=timeout, capture_output=True, text=True,
                              check=False, **options)

    @contextlib.contextmanager
    def started(self, command, **options):
        """The running command, which is killed at the end with all its processes."""
        environment = self.environment() | options.pop('environment', {})
        with subprocess.Popen(command, env=environment, text=True, errors='replace', **options) as process:
            try:
                yield process
            finally:
                for pid in descendants(process.pid):
                    with contextlib.suppress(OSError):
                        os.kill(pid, 9)
                process.kill()


def starting_options(version):
    """OpenMPI starts more ranks than there are processors only if it is told to. OpenMPI 5 writes the beginning of a line
    on standard output to standard error if something comes there before the line ends, unless it is told to leave output
    as it is."""
    if 'Open MPI' not in version:
        return []
    return ['--oversubscribe', *(['--output', ':raw'] if re.search(r'Open MPI\) [5-9]', version) else [])]


def descendants(pid):
    found = []
    waiting = [pid]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir(f'/proc/{pid}/task'):
                with open(f'/proc/{pid}/task/{task}/children', encoding='ascii') as file:
                    children = [int(child) for child in file.read().split()]
                found += children
                waiting += children
    return found


def ranks_of(starter):
    """The process of each rank that this process, such as mpirun, has started so far."""
    found = {}
    for pid in descendants(starter):
        with contextlib.suppress(OSError):
            with open(f'/proc/{pid}/comm', encoding='ascii') as file:
                if not file.read().startswith('cria-mpi'):
                    continue
            with open(f'/proc/{pid}/environ', 'rb') as file:
                rank = re.search(rb'(?:OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d+)', file.read())
            if rank:
                found[int(rank.group(1))] = pid
    return found


def status(pid):
    """What the kernel says about a process, from its state on."""
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        return file.read().rsplit(')', 1)[1].split()


def parent(pid):
    return int(status(pid)[1])


def cpu_seconds(pid):
    fields = status(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def measure_waiting(pids):
    """Which part of a processor each rank takes."""
    time.sleep(1)  # They stop polling.
    before = {rank: cpu_seconds(pid) for rank, pid in pids.items()}
    time.sleep(WAITS)
    return {rank: (cpu_seconds(pid) - before[rank]) / WAITS for rank, pid in pids.items()}


def all_end(pids):
    """Whether all of these processes end soon."""
    for _ in range(100):
        left = []
        for pid in pids:
            with contextlib.suppress(OSError):
                left += [pid] if status(pid)[0] != 'Z' else []
        if not left:
            return True
        time.sleep(0.1)
    return False
