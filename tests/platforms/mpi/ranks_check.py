#!/usr/bin/env python3
"""Checks `mpirun cria` on this machine: that several ranks say what one says, what they refuse, how they wait, and
that they end when one of them is killed or stopped at a random moment."""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROMPT = 'Once upon a time'
SILENCE = 3  # Seconds without a sign of life, for --rank-timeout.
START = 8  # Seconds, for --rank-start.
# A fault must have ended the run so many seconds after it: the longer of both, and what mpirun itself takes.
END_WITHIN = START + 15


class Failure(Exception):
    pass


def expect(condition, text, *outputs):
    if not condition:
        raise Failure('\n'.join([text, *outputs]))


def raw_output():
    """OpenMPI 5 writes the beginning of a line on standard output to standard error if something comes there before
    the line ends, unless it is told to leave output as it is."""
    version = subprocess.run(['mpirun', '--version'], capture_output=True, text=True, check=False).stdout
    return ['--output', ':raw'] if re.search(r'Open MPI\) [5-9]', version) else []


def mpirun(ranks, *arguments, options=()):
    return ['mpirun', *RAW, '--oversubscribe', '-np', str(ranks), *options, CRIA, '--rank-timeout', str(SILENCE),
            '--rank-start', str(START), *arguments]


def environment():
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',
               PRTE_ALLOW_RUN_AS_ROOT='1', PRTE_ALLOW_RUN_AS_ROOT_CONFIRM='1', CRIA_PACK_CACHE=CACHE)
    # One machine needs no network.
    env.setdefault('OMPI_MCA_btl', 'self,sm')
    return env


def run(command, timeout=120, **options):
    return subprocess.run(command, env=environment(), timeout=timeout, capture_output=True, text=True, **options)


def ranks_of(process):
    """The process of each rank that mpirun has started so far."""
    found = {}
    children = [str(process.pid)]
    while children:
        pid = children.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir(f'/proc/{pid}/task'):
                with open(f'/proc/{pid}/task/{task}/children', encoding='ascii') as file:
                    children += file.read().split()
        with contextlib.suppress(OSError):
            with open(f'/proc/{pid}/comm', encoding='ascii') as file:
                if file.read().strip() != 'cria-mpi':
                    continue
            with open(f'/proc/{pid}/environ', 'rb') as file:
                rank = re.search(rb'(?:OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d+)', file.read())
            if rank:
                found[int(rank.group(1))] = int(pid)
    return found


def cpu_seconds(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def make_models(arguments, folder):
    """A model of random weights with four query heads, in two schemes."""
    checkpoint = os.path.join(folder, 'checkpoint')
    subprocess.run([arguments.make_checkpoint, '-o', checkpoint, '--shape', 'Gqa'], check=True, capture_output=True)
    models = {}
    for scheme in ('f32', 'int8'):
        models[scheme] = os.path.join(folder, f'{scheme}.cria')
        subprocess.run([arguments.convert, checkpoint, '-o', models[scheme], '--weights', scheme, '--no-verify'],
                       check=True, capture_output=True)
    return models


def check_text(models):
    arguments = ('run', '-m', models['f32'], '-p', PROMPT, '-n', '24', '--temp', '0', '-t', '1', '--kv', 'f32')
    alone = run([CRIA, *arguments])
    expect(alone.returncode == 0, 'one rank fails', alone.stderr)
    for ranks in (2, 4):
        result = run(mpirun(ranks, *arguments))
        expect(result.returncode == 0, f'{ranks} ranks fail', result.stdout, result.stderr)
        expect(result.stdout == alone.stdout, f'{ranks} ranks say something else', result.stdout, alone.stdout)
    drafted = run(mpirun(2, *arguments, '--model-draft', models['int8']))
    expect(drafted.stdout == alone.stdout, 'a draft model changes the text', drafted.stdout, drafted.stderr)
    for wire in ('f16', 'int8'):
        result = run(mpirun(3, '--rank-wire', wire, *arguments))
        expect(result.returncode == 0 and result.stdout, f'sums in {wire} fail', result.stderr)


def check_sessions(models, folder):
    """A session file that three ranks have written is read by one, and the other way round."""
    arguments = ('run', '-m', models['f32'], '-n', '8', '--temp', '0', '-t', '1', '--kv', 'f32')
    texts = []
    for first, second in ((mpirun(3), [CRIA]), ([CRIA], mpirun(3)), ([CRIA], [CRIA])):
        path = os.path.join(folder, f'session-{len(texts)}')
        outputs = []
        for command, prompt in ((first, PROMPT), (second, ' and then')):
            result = run([*command, *arguments, '-p', prompt, '--session', path])
            expect(result.returncode == 0, 'a session fails', result.stderr)
            expect('again' not in result.stderr, 'a session is read again', result.stderr)
            outputs.append(result.stdout)
        texts.append(outputs)
    expect(texts[0] == texts[1] == texts[2], 'sessions go on differently', str(texts))


def check_perplexity(models, folder):
    path = os.path.join(folder, 'text.txt')
    with open(path, 'w', encoding='ascii') as file:
        file.write('The sea is blue, and the ship is small. ' * 20)
    values = []
    for command in ([CRIA], mpirun(3)):
        result = run([*command, 'perplexity', '-m', models['f32'], '-f', path, '-c', '64', '-t', '1', '--json'])
        expect(result.returncode == 0, 'perplexity fails', result.stderr)
        values.append(float(re.search(r'"perplexity": ?([0-9.e+]+)', result.stdout).group(1)))
    expect(abs(values[0] - values[1]) < 1e-4 * values[0], f'perplexities are {values}')


def check_refusals(models, folder):
    here, there = (os.path.join(folder, name) for name in ('here', 'there'))
    for place, model in ((here, 'f32'), (there, 'int8')):
        os.makedirs(place)
        shutil.copy(models[model], os.path.join(place, 'model.cria'))
    arguments = ['run', '-m', 'model.cria', '-p', PROMPT, '-n', '2']
    # Ranks in folders of their own, as if each were on a board.
    in_folder = ['sh', '-c', f'cd {folder}; [ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" = 0 ] && cd here || cd there; '
                 'exec "$@"', 'sh']
    command = mpirun(2, *arguments, options=in_folder)
    result = run(command)
    expect(result.returncode != 0 and 'rank 1 has another model file than rank 0' in result.stderr,
           'ranks with different models run', result.stdout, result.stderr)
    os.remove(os.path.join(there, 'model.cria'))
    result = run(command)
    expect(result.returncode != 0 and re.search(r'rank 1: .*model\.cria', result.stderr),
           'a rank without a model is not named', result.stdout, result.stderr)
    result = run(mpirun(5, *['run', '-m', models['f32'], '-p', PROMPT]))
    expect(result.returncode != 0 and '5 ranks are too many' in result.stderr, 'too many ranks run', result.stderr)
    result = run([*mpirun(2), '--rank-weights', '1,2,3', 'run', '-m', models['f32'], '-p', PROMPT])
    expect(result.returncode != 0 and 'a weight for each rank' in result.stderr, 'weights are not checked',
           result.stderr)


def mapped_bytes(pid, ending):
    """The bytes of each file with this ending that a process maps."""
    sizes = {}
    with open(f'/proc/{pid}/maps', encoding='utf-8') as file:
        for line in file:
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5].rstrip('\n').endswith(ending):
                begin, end = (int(number, 16) for number in fields[0].split('-'))
                path = fields[5].rstrip('\n')
                sizes[path] = sizes.get(path, 0) + end - begin
    return sizes


def check_mappings(models, pids):
    """Each rank maps packed weights of its own, as many as planned, and of the model file little more than what is not
    divided: the metadata and the embedding table."""
    plan = run([CRIA, 'plan', '-m', models['f32'], f'--ranks={len(pids)}', '-t', '1', '--json'])
    expect(plan.returncode == 0, 'there is no plan', plan.stderr)
    planned = [rank['packed_weights_bytes'] for rank in json.loads(plan.stdout)['ranks']]
    files = set()
    for rank, pid in pids.items():
        packed = mapped_bytes(pid, '.packed')
        expect(len(packed) == 1, f'rank {rank} maps {packed}')
        files |= packed.keys()
        size = sum(packed.values())
        # The first and the last page of a mapping are whole, and each matrix begins at a multiple of 64 bytes.
        expect(planned[rank] <= size <= 1.03 * planned[rank] + 2 * 4096, f'rank {rank} maps {size}, not {planned[rank]}')
        whole = sum(mapped_bytes(pid, '.cria').values())
        expect(whole < os.path.getsize(models['f32']) / 2, f'rank {rank} maps {whole} bytes of the model file')
    expect(len(files) == len(pids), f'ranks share {files}')


def check_chat(models):
    """One line is one message, answered at once; meanwhile, no rank computes."""
    command = mpirun(3, 'chat', '-m', models['f32'], '-t', '1', '-n', '8', '--temp', '0', '-q')
    with subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as chat:
        try:
            for _ in range(2):
                expect(chat.stdout.read(2) == '> ', 'there is no prompt')
                chat.stdin.write('Hello!\n')
                chat.stdin.flush()
                expect(chat.stdout.readline() != '', 'a line is not answered')
            time.sleep(1)  # Other ranks stop polling.
            pids = ranks_of(chat)
            expect(sorted(pids) == [0, 1, 2], f'there are other ranks: {pids}')
            check_mappings(models, pids)
            before = {rank: cpu_seconds(pid) for rank, pid in pids.items()}
            seconds = 4.0
            time.sleep(seconds)
            shares = {rank: (cpu_seconds(pid) - before[rank]) / seconds for rank, pid in pids.items()}
            expect(max(shares.values()) < 0.02, f'waiting ranks take {shares} of a processor')
            chat.stdin.close()
            expect(chat.wait(30) == 0, 'the chat fails')
        finally:
            chat.kill()
    return shares


def fault_trial(models, rng):
    """Kills or stops a random rank at a random moment, and returns how long the run took to end."""
    ranks = rng.choice((2, 3, 4))
    victim = rng.randrange(ranks)
    kind = rng.choice((signal.SIGKILL, signal.SIGSTOP))
    moment = rng.uniform(0.0, 2.5)
    about = f'{kind.name} to rank {victim} of {ranks} after {moment:.2f} s'
    # A text might end by itself.
    command = mpirun(ranks, 'bench', '-m', models['f32'], '-p', '32', '-n', '32', '-r', '1000000', '-t', '1')
    with subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, errors='replace') as process:
        deadline = time.monotonic() + 60
        while victim not in (pids := ranks_of(process)):
            expect(time.monotonic() < deadline and process.poll() is None, f'{about}: the ranks do not start')
            time.sleep(0.01)
        time.sleep(moment)
        pids = ranks_of(process)
        if victim not in pids:
            process.kill()
            raise Failure(f'{about}: it has ended before\n{process.communicate()[1]}')
        begin = time.monotonic()
        os.kill(pids[victim], kind)
        try:
            _, errors = process.communicate(timeout=END_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            for pid in pids.values():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            raise Failure(f'{about}: the run goes on for {END_WITHIN} s') from None
        seconds = time.monotonic() - begin
    expect(process.returncode != 0, f'{about}: the run succeeds', errors)
    named = re.search(rf'rank {victim}\b', errors) or 'not all ranks have started' in errors
    expect(named, f'{about}: no sentence names the rank', errors)
    # The kernel needs a moment to end a process that is stopped.
    for _ in range(60):
        left = [pid for pid in pids.values() if os.path.exists(f'/proc/{pid}')]
        if not left:
            break
        time.sleep(0.1)
    expect(not left, f'{about}: processes are left: {left}', errors)
    return seconds, about


def main():
    global CRIA, CACHE, RAW  # pylint: disable=global-variable-undefined
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cria', required=True, help='the program')
    parser.add_argument('--convert', required=True, help='the program cria-convert')
    parser.add_argument('--make-checkpoint', required=True, help='the program cria-make-checkpoint')
    parser.add_argument('--trials', type=int, default=100, help='how many ranks are killed or stopped')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only-faults', action='store_true')
    arguments = parser.parse_args()
    CRIA = os.path.abspath(arguments.cria)
    beside = os.path.join(os.path.dirname(CRIA), 'cria-mpi')
    if not shutil.which('mpirun') or not os.path.exists(beside):
        print('skipped: there is no mpirun, or cria was built without MPI')
        return 77
    RAW = raw_output()
    with tempfile.TemporaryDirectory() as folder:
        CACHE = os.path.join(folder, 'packed')
        models = make_models(arguments, folder)
        try:
            if not arguments.only_faults:
                check_text(models)
                check_sessions(models, folder)
                check_perplexity(models, folder)
                check_refusals(models, folder)
                print('waiting ranks take', check_chat(models))
            rng = random.Random(arguments.seed)
            longest = (0.0, '')
            for trial in range(arguments.trials):
                longest = max(longest, fault_trial(models, rng))
                if (trial + 1) % 10 == 0:
                    print(f'{trial + 1} faults; the slowest end took {longest[0]:.1f} s ({longest[1]})', flush=True)
            print(f'{arguments.trials} faults; the slowest end took {longest[0]:.1f} s ({longest[1]})')
        except Failure as failure:
            print(f'FAILED: {failure}', file=sys.stderr)
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
