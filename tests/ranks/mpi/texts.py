"""Checks that several ranks say what one says, what they refuse, and how a chat waits."""

import json
import os
import pty
import re
import shutil
import subprocess

from cluster import PROMPT, expect, measure_waiting, ranks_of
from memory import check_mappings


def check_text(cluster):
    arguments = ('run', '-m', cluster.models['f32'], '-p', PROMPT, '-n', '24', '--temp', '0', '-t', '1', '--kv', 'f32')
    alone = cluster.run([cluster.cria, *arguments])
    expect(alone.returncode == 0, 'one rank fails', alone.stderr)
    for ranks in (2, 4):
        result = cluster.run(cluster.mpirun(ranks, *arguments))
        expect(result.returncode == 0, f'{ranks} ranks fail', result.stdout, result.stderr)
        expect(result.stdout == alone.stdout, f'{ranks} ranks say something else', result.stdout, alone.stdout)
    drafted = cluster.run(cluster.mpirun(2, *arguments, '--model-draft', cluster.models['int8']))
    expect(drafted.stdout == alone.stdout, 'a draft model changes the text', drafted.stdout, drafted.stderr)
    for wire in ('f16', 'int8'):
        command = cluster.mpirun(3, '--rank-wire', wire, *arguments)
        result = cluster.run(command)
        expect(result.returncode == 0 and result.stdout, f'sums in {wire} fail', result.stderr)
        drafted = cluster.run([*command, '--model-draft', cluster.models['int8']])
        expect(drafted.stdout == result.stdout, f'a draft model changes the text with sums in {wire}', drafted.stdout,
               result.stdout, drafted.stderr)


def check_sessions(cluster):
    """A session file that three ranks have written is read by one, and the other way round."""
    arguments = ('run', '-m', cluster.models['f32'], '-n', '8', '--temp', '0', '-t', '1', '--kv', 'f32')
    one, three = [cluster.cria], cluster.mpirun(3)
    texts = []
    for first, second in ((three, one), (one, three), (one, one)):
        path = os.path.join(cluster.folder, f'session-{len(texts)}')
        outputs = []
        for command, prompt in ((first, PROMPT), (second, ' and then')):
            result = cluster.run([*command, *arguments, '-p', prompt, '--session', path])
            expect(result.returncode == 0, 'a session fails', result.stderr)
            expect('again' not in result.stderr, 'a session is read again', result.stderr)
            outputs.append(result.stdout)
        texts.append(outputs)
    expect(texts[0] == texts[1] == texts[2], 'sessions go on differently', str(texts))


def check_perplexity(cluster):
    path = os.path.join(cluster.folder, 'text.txt')
    with open(path, 'w', encoding='ascii') as file:
        file.write('The sea is blue, and the ship is small. ' * 20)
    values = []
    for command in ([cluster.cria], cluster.mpirun(3)):
        result = cluster.run([*command, 'perplexity', '-m', cluster.models['f32'], '-f', path, '-c', '64', '-t', '1',
                              '--json'])
        expect(result.returncode == 0, 'perplexity fails', result.stderr)
        values.append(float(re.search(r'"perplexity": ?([0-9.e+]+)', result.stdout).group(1)))
    expect(abs(values[0] - values[1]) < 1e-4 * values[0], f'perplexities are {values}')


def check_command_lines(cluster):
    """What commands do with options that mean something else on several ranks, or nothing."""
    model = ('-m', cluster.models['f32'])
    chat = ('chat', *model, '-t', '1', '-n', '4')
    result = cluster.run(cluster.mpirun(2, *chat, '--json'), input='Hello!\n')
    expect(json.loads(result.stdout)['role'] == 'assistant', 'there is something beside JSON', result.stdout)
    result = cluster.run(cluster.mpirun(2, *chat, '-st'), input='Hello!\nHello again!\n')
    expect(result.stdout.count('> ') == 1, 'a chat of one answer goes on', result.stdout)
    bench = ('bench', *model, '-p', '8', '-n', '4', '-r', '1', '-o', 'json')
    alone = json.loads(cluster.run([cluster.cria, *bench, '-t', '1']).stdout)
    rows = json.loads(cluster.run(cluster.mpirun(2, *bench, '-t', '1,2')).stdout)
    numbers = [(row['n_ranks'], row['n_threads']) for row in rows]
    expect(numbers == [(2, 1), (2, 1), (2, 2), (2, 2)], 'rows are missing', str(rows))
    for name in ('model_n_params', 'model_size'):
        expect({row[name] for row in rows} == {alone[0][name]}, f'{name} is that of a part', str(rows))
    result = cluster.run(cluster.mpirun(3, 'plan', *model, '--json'))
    expect(len(json.loads(result.stdout)['ranks']) == 3, 'the plan is of other ranks', result.stdout)
    for arguments, sentence in ((('pack', *model), '"cria pack --ranks 3 --rank R"'),
                                (('eval', *model, '--base', *model[1:], '-f', __file__), '--save-logits'),
                                (('--rank-wire', 'bf16', 'run', *model), 'takes f32, f16 or int8')):
        result = cluster.run(cluster.mpirun(3, *arguments))
        expect(result.returncode != 0 and result.stderr.count(sentence) == 1, f'{arguments} is not refused once',
               result.stdout, result.stderr)
    # A prompt may come from a pipe, but nobody waits for what is typed without being asked.
    command = cluster.mpirun(2, 'run', *model, '-t', '1', '-n', '2')
    result = cluster.run(command, input=PROMPT)
    expect(result.returncode == 0 and result.stdout.startswith(PROMPT), 'a pipe is not read', result.stdout, result.stderr)
    controller, terminal = pty.openpty()
    result = cluster.run(command, stdin=terminal)
    expect(result.returncode != 0 and 'there is no prompt' in result.stderr, 'a terminal is read', result.stderr)
    os.close(controller)
    os.close(terminal)


def in_own_folders(cluster):
    """Lets rank 0 run in the folder `here`, and the others in `there`, as if they were on other boards."""
    return ['sh', '-c', f'cd {cluster.folder}; '
            '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] && cd here || cd there; exec "$@"', 'sh']


def check_refusals(cluster):
    here, there = (os.path.join(cluster.folder, name) for name in ('here', 'there'))
    for place, model in ((here, 'f32'), (there, 'int8')):
        os.makedirs(place, exist_ok=True)
        shutil.copy(cluster.models[model], os.path.join(place, 'model.cria'))
    arguments = ['run', '-m', 'model.cria', '-p', PROMPT, '-n', '2']
    command = cluster.mpirun(2, *arguments, options=in_own_folders(cluster))
    result = cluster.run(command)
    expect(result.returncode != 0 and 'rank 1 has another model file than rank 0' in result.stderr,
           'ranks with different models run', result.stdout, result.stderr)
    os.remove(os.path.join(there, 'model.cria'))
    result = cluster.run(command)
    expect(result.returncode != 0 and re.search(r'rank 1: .*model\.cria', result.stderr),
           'a rank without a model is not named', result.stdout, result.stderr)
    result = cluster.run(cluster.mpirun(5, *['run', '-m', cluster.models['f32'], '-p', PROMPT]))
    expect(result.returncode != 0 and '5 ranks are too many' in result.stderr, 'too many ranks run', result.stderr)
    result = cluster.run(cluster.mpirun(2, '--rank-weights', '1,2,3', 'run', '-m', cluster.models['f32'], '-p', PROMPT))
    expect(result.returncode != 0 and 'a weight for each rank' in result.stderr, 'weights are not checked',
           result.stderr)


def check_failure(cluster):
    """If one rank alone cannot go on, all end, and its error is told."""
    # The embedding table is so large that its rows are read when they are needed.
    large = cluster.model(cluster.checkpoint('--vocab-size', '20000', '--hidden-size', '256', '--intermediate-size', '64',
                                             '--num-hidden-layers', '1'), 'f32')
    models = [os.path.join(cluster.folder, name, 'large.cria') for name in ('here', 'there')]
    for model in models:
        os.makedirs(os.path.dirname(model), exist_ok=True)
        shutil.copy(large, model)
    command = cluster.mpirun(2, 'chat', '-m', 'large.cria', '-t', '1', '-n', '4', options=in_own_folders(cluster))
    with cluster.started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as chat:
        chat.stdin.write('Hello!\n')
        chat.stdin.flush()
        expect(chat.stdout.readline() != '', 'a line is not answered')
        os.truncate(models[1], 4096)
        chat.stdin.write('Hello again!\n')
        chat.stdin.flush()
        # mpirun itself takes some seconds.
        errors = chat.communicate(timeout=20)[1]
        expect(re.search(r'rank 1 \(.*\): large\.cria: .*: all ranks end', errors), 'its error is not told', errors)


def check_chat(cluster):
    """One line is one message, answered at once; meanwhile, no rank computes."""
    command = cluster.mpirun(3, 'chat', '-m', cluster.models['f32'], '-t', '1', '-n', '8', '--temp', '0', '-q')
    with cluster.started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as chat:
        for _ in range(2):
            expect(chat.stdout.read(2) == '> ', 'there is no prompt')
            chat.stdin.write('Hello!\n')
            chat.stdin.flush()
            expect(chat.stdout.readline() != '', 'a line is not answered')
        pids = ranks_of(chat.pid)
        expect(sorted(pids) == [0, 1, 2], f'there are other ranks: {pids}')
        check_mappings(cluster, pids)
        shares = measure_waiting(pids)
        expect(max(shares.values()) < 0.02, f'waiting ranks take {shares} of a processor')
        chat.stdin.close()
        expect(chat.wait(30) == 0, 'the chat fails')
    return shares
