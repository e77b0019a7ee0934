"""Kills, stops and hangs random ranks at random moments, or cuts the links of their boards: all ranks must end in time,
with a sentence that names the rank."""

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import tempfile
import time

from boards import Boards
from cluster import PROMPT, START, all_end, expect, parent, ranks_of
from memory import mapped_bytes

STALL = 3  # Seconds, for --rank-stall.
# A fault must have ended the run so many seconds after it: the longest of the limits, and what mpirun itself takes.
END_WITHIN = START + 15

PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
PTRACE_CONT = 7
WAIT_FOR_ALL = 0x40000000  # __WALL


class Hang:
    """Lets the main thread of a process hang, while its other threads go on, which no signal can."""

    def __init__(self, pid):
        self.pid = pid
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self.libc.ptrace.restype = ctypes.c_long
        self.call(PTRACE_SEIZE)
        self.interrupt()

    def call(self, request):
        if self.libc.ptrace(request, self.pid, None, None) != 0:
            raise OSError(ctypes.get_errno(), 'ptrace')

    def interrupt(self):
        self.call(PTRACE_INTERRUPT)
        os.waitpid(self.pid, WAIT_FOR_ALL)

    def reap(self):
        """Takes notice of the end of the process, which its parent learns after its tracer only."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG | WAIT_FOR_ALL)

    def step_on(self):
        """Lets the thread go on for a moment, and hang elsewhere, unless it ends just now."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            self.call(PTRACE_CONT)
            time.sleep(0.01)
            self.interrupt()


def can_hang():
    """Whether this machine lets a process trace others."""
    with subprocess.Popen(['sleep', '60']) as process:
        try:
            Hang(process.pid)
            return True
        except OSError:
            return False
        finally:
            process.kill()


class Trial:
    """One fault of one rank."""

    def __init__(self, rng, kind):
        self.ranks = rng.choice((2, 3, 4))
        self.victim = rng.randrange(self.ranks)
        self.kind = kind
        # After the process has begun, often before the ranks have met, or after it has loaded the model. Of threads
        # that hang while MPI starts, MPI alone could tell.
        self.is_early = self.kind != 'hang' and rng.random() < 0.5
        self.moment = rng.uniform(0.0, 1.0)

    def __str__(self):
        begin = 'starting' if self.is_early else 'loading'
        return f'{self.kind} of rank {self.victim} of {self.ranks}, {self.moment:.2f} s after {begin}'

    def run(self, cluster):
        """Returns how long the run took to end after the fault."""
        # One step after the other without an end; `bench` measures other things between them.
        command = cluster.mpirun(self.ranks, '--rank-stall', str(STALL), 'run', '-m', cluster.models['f32'], '-p', PROMPT,
                                 '-n', '-1', '--ignore-eos', '--context-full', 'shift', '-t', '1')
        if self.kind != 'cut':
            return self.fail(cluster, command, {}, None)
        with contextlib.closing(Boards(self.ranks, cluster.folder)) as boards:
            return self.fail(cluster, boards.command(command), boards.environment(), boards.boards[self.victim].cut)

    def fail(self, cluster, command, environment, cut):
        # Not a pipe: behind a link that is cut, the daemon of mpirun still waits, and would keep it open.
        with tempfile.TemporaryFile('w+') as stderr, \
                cluster.started(command, environment=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=stderr) as process:
            # On other boards, ranks are not below mpirun.
            find = (lambda: ranks_of(os.getpid())) if cut else (lambda: ranks_of(process.pid))
            deadline = time.monotonic() + 60
            while not self.has_begun(find()):
                expect(time.monotonic() < deadline and process.poll() is None, f'{self}: the ranks do not start')
                time.sleep(0.01)
            time.sleep(self.moment)
            pids = find()
            # On other boards, a daemon of mpirun has started the rank.
            starters = set(map(parent, pids.values()))
            expect(self.victim in pids, f'{self}: it has ended before')
            begin = time.monotonic()
            if cut:
                cut()
            self.strike(process, pids[self.victim], begin)
            seconds = time.monotonic() - begin
            stderr.seek(0)
            errors = stderr.read()
        if self.kind == 'kill' and cluster.is_mpich:
            # Its mpirun kills the others at once, and may return 0 after that.
            expect(seconds < 2, f'{self}: the run goes on', errors)
        else:
            expect(process.returncode != 0, f'{self}: the run succeeds', errors)
            expect(self.is_named(cluster, errors), f'{self}: no sentence names the rank', errors)
        expect(all_end([*pids.values(), *starters]), f'{self}: processes are left', errors)
        return seconds

    def is_named(self, cluster, errors):
        # That a rank packs its weights, or is bound to some processors, is no error.
        sentences = [line for line in errors.splitlines() if 'packing' not in line and 'may use' not in line]
        # MPICH does not tell which rank is missing.
        nobody = '|some ranks have not started' if self.is_early and cluster.is_mpich else ''
        # Without its link, the first board, on which mpirun runs, misses the others.
        victim = '[1-9]' if self.kind == 'cut' and self.victim == 0 else self.victim
        return any(re.search(rf'ranks? {victim}\b{nobody}', line) for line in sentences)

    def has_begun(self, pids):
        pid = pids.get(self.victim)
        # A process that has just ended maps nothing.
        with contextlib.suppress(OSError):
            return pid is not None and (self.is_early or bool(mapped_bytes(pid, '.packed')))
        return False

    def strike(self, process, pid, begin):
        """Does it, and waits for the end of the run."""
        hang = None
        if self.kind == 'hang':
            hang = Hang(pid)
        elif self.kind != 'cut':
            os.kill(pid, signal.SIGKILL if self.kind == 'kill' else signal.SIGSTOP)
        next_step = begin + STALL + 5
        while process.poll() is None:
            now = time.monotonic()
            expect(now < begin + (3 if hang else 1) * END_WITHIN, f'{self}: the run goes on')
            if hang:
                hang.reap()
                # Rank 0 between two steps of the model is like one that waits for its user: let it hang elsewhere.
                if self.victim == 0 and now > next_step:
                    hang.step_on()
                    next_step = now + STALL + 5
            time.sleep(0.02)


def check_faults(cluster, count, rng, no_network):
    """Returns a sentence about what was tried. `no_network` says what the system lacks for boards; empty: nothing."""
    kinds = ['kill', 'stop']
    if can_hang():
        kinds.append('hang')
    else:
        print('not tried: hanging, because this system lets no process trace another')
    if no_network:
        print(f'not tried: cutting links, because this system lets the test have no network of its own: {no_network}')
    elif cluster.is_mpich:
        print('not tried: cutting links, because boards are only tried with OpenMPI')
    else:
        kinds.append('cut')
    done = dict.fromkeys(kinds, 0)
    longest = (0.0, '')
    for i in range(count):
        trial = Trial(rng, kinds[i % len(kinds)])
        longest = max(longest, (trial.run(cluster), str(trial)))
        done[trial.kind] += 1
        total = sum(done.values())
        if total % 10 == 0 and total < count:
            print(f'{total} faults; the slowest end took {longest[0]:.1f} s ({longest[1]})', flush=True)
    about = ', '.join(f'{number} {kind}' for kind, number in done.items())
    return f'{count} faults ({about}); the slowest end took {longest[0]:.1f} s ({longest[1]})'
