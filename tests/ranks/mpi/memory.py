"""Checks what the kernel says that ranks map and have in memory."""

import contextlib
import json
import os
import subprocess
import time

from cluster import PROMPT, expect, ranks_of


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


def resident_bytes(pid):
    """What a process has in memory, by the kernel's account: pages of its own, shared memory included; those of packed
    weights; and those of other files."""
    found = {'private': 0, 'packed': 0, 'other': 0}
    with open(f'/proc/{pid}/smaps', encoding='utf-8') as file:
        for line in file:
            fields = line.split(maxsplit=5)
            if not fields[0].endswith(':'):
                path = fields[5].strip() if len(fields) == 6 else ''
                is_shared_memory = path.startswith(('/dev/shm/', '/memfd:', '/SYSV'))
                kind = 'packed' if path.endswith('.packed') else 'private' if is_shared_memory else 'other'
            elif fields[0] == 'Rss:':
                resident = int(fields[1]) * 1024
                found[kind] += resident
            elif fields[0] == 'Anonymous:':
                found[kind] -= int(fields[1]) * 1024
                found['private'] += int(fields[1]) * 1024
    return found


def largest_residents(cluster, command):
    """Of each rank while the command runs."""
    largest = {}
    with cluster.started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        while process.poll() is None:
            for rank, pid in ranks_of(process.pid).items():
                # The process may have ended meanwhile.
                with contextlib.suppress(OSError):
                    found = resident_bytes(pid)
                    before = largest.setdefault(rank, found)
                    largest[rank] = {kind: max(before[kind], found[kind]) for kind in found}
            time.sleep(0.05)
        expect(process.returncode == 0, 'measuring the memory fails', process.stdout.read())
    return largest


def check_memory(cluster, counts=(3,)):
    """What ranks have in memory while their context is full is what the plan says, within 3%."""
    checkpoint = cluster.checkpoint('--hidden-size', '512', '--intermediate-size', '2048', '--num-hidden-layers', '8',
                                    '--num-attention-heads', '12', '--num-key-value-heads', '12', '--head-dim', '64',
                                    '--vocab-size', '4096', '--max-position-embeddings', '2048')
    model = cluster.model(checkpoint, 'int8')
    for ranks in counts:
        options = ('-m', model, '-c', '2048', '-t', '1', '--kv', 'f32', '--json')
        plan = cluster.run([cluster.cria, 'plan', '--ranks', str(ranks), *options])
        expect(plan.returncode == 0, 'there is no plan', plan.stderr)
        # Packing takes memory of its own.
        packed = cluster.run(cluster.mpirun(ranks, 'run', '-m', model, '-p', PROMPT, '-n', '1'))
        expect(packed.returncode == 0, 'packing fails', packed.stderr)
        largest = largest_residents(cluster, cluster.mpirun(ranks, 'bench', '--memory', *options))
        for rank, planned in enumerate(json.loads(plan.stdout)['ranks']):
            found = largest[rank]
            pairs = {'private': planned['private_bytes'], 'packed': planned['packed_weights_bytes'],
                     'other': planned['mapped_bytes'] - planned['packed_weights_bytes']}
            about = ', '.join(f'{kind} {found[kind]} of {pairs[kind]}' for kind in pairs)
            print(f'rank {rank} of {ranks}: {about}', flush=True)
            for kind in ('private', 'packed'):
                expect(abs(found[kind] - pairs[kind]) < 0.03 * pairs[kind], f'rank {rank} of {ranks}: {about}')


def check_mappings(cluster, pids):
    """Each rank maps packed weights of its own, as many as planned, and of the model file little more than what is not
    divided: the metadata and the embedding table."""
    plan = cluster.run([cluster.cria, 'plan', '-m', cluster.models['f32'], f'--ranks={len(pids)}', '-t', '1', '--json'])
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
        expect(whole < os.path.getsize(cluster.models['f32']) / 2, f'rank {rank} maps {whole} bytes of the model file')
    expect(len(files) == len(pids), f'ranks share {files}')
