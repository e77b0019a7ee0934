"""Checks what the kernel says that ranks map."""

import json
import os

from cluster import expect


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
