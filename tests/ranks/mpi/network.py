"""Checks `mpirun cria` on boards with a network between them: the bytes and the time of a token are as planned."""

import json
import os
import subprocess

from boards import Boards
from cluster import Cluster, expect

TOKENS = 32
# Links that are measured: megabits a second, and seconds of delay.
LINKS = [(1000, 0.0), (1000, 0.0002), (1000, 0.001), (100, 0.0), (100, 0.0002), (100, 0.001)]
# Lets each rank have a processor of its own.
PINNED = ['sh', '-c', 'exec taskset -c "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" "$@"', 'sh']


class NetworkCluster(Cluster):
    """Starts ranks on boards, one on each."""

    def __init__(self, arguments, folder):
        super().__init__(arguments.cria, arguments.convert, arguments.make_checkpoint, folder)
        tests = os.path.dirname(os.path.abspath(arguments.relay))
        self.relay = os.path.join(tests, 'cria-delay-relay')
        self.exchange_time = os.path.join(tests, 'cria-exchange-time')
        # Sums are large, and computing takes little.
        checkpoint = self.checkpoint('--hidden-size', '2048', '--intermediate-size', '384', '--num-hidden-layers',
                                     '12' if arguments.time else '4', '--num-attention-heads', '12',
                                     '--num-key-value-heads', '12', '--head-dim', '32', '--vocab-size', '512',
                                     '--max-position-embeddings', '256')
        self.models['wide'] = self.model(checkpoint, 'int8')

    def run_on_boards(self, boards, command, timeout=120):
        with self.started(boards.command(command), environment=boards.environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            output, errors = process.communicate(timeout=timeout)
        expect(process.returncode == 0, 'ranks on boards fail', output, errors)
        return output

    def bench(self, ranks, repetitions, pinned=False):
        return self.mpirun(ranks, 'bench', '-m', self.models['wide'], '-p', '0', '-n', str(TOKENS), '-r', str(repetitions),
                           '-t', '1', '-o', 'json', program=[*PINNED, self.cria] if pinned else None)

    def mpirun_pinned(self, repetitions):
        """The same on this machine alone, by shared memory."""
        command = self.bench(2, repetitions, pinned=True)
        return [*command[:1], '--bind-to', 'none', *command[1:]]

    def plan(self, ranks, *options):
        plan = self.run([self.cria, 'plan', '-m', self.models['wide'], '--ranks', str(ranks), '-t', '1', '--json', *options])
        expect(plan.returncode == 0, 'there is no plan', plan.stderr)
        return json.loads(plan.stdout)


def token_seconds(output):
    """Of each repetition of a bench."""
    begin = output.index('[')
    return [nanoseconds / TOKENS / 1e9 for nanoseconds in json.loads(output[begin:])[0]['samples_ns']]


def check_bytes(cluster, ranks):
    """What a token adds to the counters of each board's interface is what the plan says."""
    planned = cluster.plan(ranks)['ranks']
    counted = []
    for repetitions in (1, 5):
        boards = Boards(ranks, cluster.folder)
        try:
            cluster.run_on_boards(boards, cluster.bench(ranks, repetitions))
            counted.append([board.counters()[0] for board in boards.boards])
        finally:
            boards.close()
    print(f'{ranks} ranks, bytes that a token sends, as the interfaces count, as planned with and without headers:')
    for rank, plan in enumerate(planned):
        # Connections and signs of life are in both, but longer runs have some more of the latter.
        sent = (counted[1][rank] - counted[0][rank]) / (4 * TOKENS)
        on_wire = plan['sent_wire_bytes_per_token']
        print(f'  rank {rank}: {sent:.0f}, {on_wire}, {plan["sent_bytes_per_token"]}', flush=True)
        expect(abs(sent - on_wire) < 0.03 * on_wire, f'rank {rank} of {ranks} sends {sent:.0f} bytes, not {on_wire}')


def check_time(cluster, megabits, delay):
    """The time of a token with two ranks, each on a processor of its own, is that of computing and what the plan predicts
    for exchanging, given the latency that a small sum has."""
    boards = Boards(2, cluster.folder, megabits, delay, cluster.relay)
    try:
        probe = cluster.mpirun(2, program=[*PINNED, cluster.exchange_time])[:-4] + ['100', '1']
        latency = float(cluster.run_on_boards(boards, probe))
        on_boards, computing = [], []
        for _ in range(3):
            on_boards += token_seconds(cluster.run_on_boards(boards, cluster.bench(2, 6, pinned=True)))
            local = cluster.run(cluster.mpirun_pinned(6))
            expect(local.returncode == 0, 'ranks on one board fail', local.stderr)
            computing += token_seconds(local.stdout)
    finally:
        boards.close()
    options = ('--board', 'pi-5-8gb', '--network-mbit', str(megabits), '--network-ms', f'{latency * 1e3:.4f}')
    exchanging = cluster.plan(2, *options)['predicted']['exchange_seconds']
    # Other programs of this machine disturb some of the repetitions.
    predicted, measured = min(computing) + exchanging, min(on_boards)
    print(f'{megabits} Mbit/s, {delay * 1e3:.1f} ms and a latency of {latency * 1e3:.3f} ms: {measured * 1e3:.2f} ms for a '
          f'token, predicted {predicted * 1e3:.2f} ms ({min(computing) * 1e3:.2f} computing), ratio '
          f'{measured / predicted:.2f}', flush=True)
    return measured / predicted


def check_binding(cluster):
    """A rank that mpirun lets use a single processor of its board says what to do about it."""
    processors = len(os.sched_getaffinity(0))
    if processors < 2 or processors != os.cpu_count():
        print('skipped: this machine lets the test use one processor, or not all of them')
        return
    boards = Boards(2, cluster.folder)
    try:
        for policy in ('none', 'hwthread'):
            # If it may oversubscribe a board, mpirun starts both ranks on one.
            command = [word for word in boards.command(cluster.bench(2, 1)) if word != '--oversubscribe']
            command[command.index('--bind-to') + 1] = policy
            with cluster.started(command, environment=boards.environment(), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                errors = process.communicate(timeout=120)[1]
            for rank in range(2):
                sentence = f'rank {rank} (board{rank}) may use 1 of the '
                expect((sentence in errors) == (policy == 'hwthread'), f'--bind-to {policy}: rank {rank} says', errors)
    finally:
        boards.close()
    print('ranks that are bound to one processor say so', flush=True)


def check_network(arguments, folder):
    """With the arguments of ranks_check.py."""
    cluster = NetworkCluster(arguments, folder)
    check_binding(cluster)
    for ranks in arguments.ranks or (2, 3, 4, 6):
        check_bytes(cluster, ranks)
    if arguments.time:
        ratios = [check_time(cluster, *link) for link in LINKS]
        expect(all(0.8 < ratio < 1.2 for ratio in ratios), f'a token takes {ratios} times as long as predicted')
