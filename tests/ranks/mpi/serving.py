"""Checks `mpirun cria serve`: its answers, several at once, how it waits and how it ends."""

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

from cluster import PROMPT, Failure, all_end, expect, measure_waiting, ranks_of

PROMPTS = (PROMPT, 'The sea is blue', 'A', 'The ship is small, and the sea is large. ' * 2)


def serve_arguments(cluster):
    return ('serve', '-m', cluster.models['f32'], '--port', '0', '-np', '2', '-t', '1', '--kv', 'f32')


def url_of(server):
    """Waits for the line that says where the server listens."""
    lines = []
    for line in server.stderr:
        lines.append(line)
        if found := re.search(r' at (http://\S+)', line):
            return found.group(1)
    expect(False, 'the server does not start', *lines)
    return None


def complete(url, prompt):
    body = json.dumps({'prompt': prompt, 'max_tokens': 24, 'temperature': 0, 'ignore_eos': True}).encode()
    request = urllib.request.Request(url + '/v1/completions', body, {'Content-Type': 'application/json'})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)['choices'][0]['text']
    except urllib.error.HTTPError as error:
        raise Failure(f'a request is answered with {error.code}\n{error.read().decode()}') from None


def answers(url):
    """Those to all prompts, of which two are answered at the same time and the others wait."""
    with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
        return list(pool.map(lambda prompt: complete(url, prompt), PROMPTS))


def check_serving(cluster):
    """Returns which part of a processor each waiting rank takes."""
    with cluster.started([cluster.cria, *serve_arguments(cluster)], stderr=subprocess.PIPE) as server:
        alone = answers(url_of(server))
    shares = {}
    for ranks in (2, 3):
        command = cluster.mpirun(ranks, *serve_arguments(cluster))
        with cluster.started(command, stderr=subprocess.PIPE) as server:
            url = url_of(server)
            said = answers(url)
            expect(said == alone, f'{ranks} ranks answer something else', repr(said), repr(alone))
            pids = ranks_of(server.pid)
            expect(sorted(pids) == list(range(ranks)), f'there are other ranks: {pids}')
            if ranks == 3:
                shares = measure_waiting(pids)
                expect(max(shares.values()) < 0.02, f'waiting ranks take {shares} of a processor')
                expect(answers(url) == alone, f'{ranks} ranks that have waited answer something else')
            signal_rank_0(server, pids)
    end_by_mpirun(cluster)
    end_at_once(cluster)
    return shares


def signal_rank_0(server, pids):
    """SIGTERM to rank 0 alone lets it tell the others."""
    os.kill(pids[0], signal.SIGTERM)
    expect(server.wait(20) == 0, 'a server that was ended fails', server.stderr.read())
    expect(all_end(pids.values()), 'ranks go on after rank 0 was told to end')


def read_stream(url):
    body = json.dumps({'prompt': PROMPT, 'max_tokens': 24, 'temperature': 0, 'ignore_eos': True, 'stream': True})
    request = urllib.request.Request(url + '/v1/completions', body.encode(), {'Content-Type': 'application/json'})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def end_by_mpirun(cluster):
    """mpirun passes SIGUSR1 on to all ranks. The answer under way is finished."""
    command = cluster.mpirun(3, *serve_arguments(cluster))
    with cluster.started(command, stderr=subprocess.PIPE) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        url = url_of(server)
        pids = ranks_of(server.pid)
        # The answer waits for this rank.
        os.kill(pids[1], signal.SIGSTOP)
        answer = pool.submit(read_stream, url)
        time.sleep(0.5)
        expect(not answer.done(), 'an answer does not need all ranks')
        server.send_signal(signal.SIGUSR1)
        time.sleep(0.2)
        os.kill(pids[1], signal.SIGCONT)
        expect(answer.result().rstrip().endswith('[DONE]'), 'an answer under way is not finished', answer.result())
        expect(server.wait(30) == 0, 'a server that was ended by mpirun fails', server.stderr.read())
        expect(all_end(pids.values()), 'ranks go on after mpirun was told to end')


def end_at_once(cluster):
    """SIGTERM to mpirun ends all ranks, without much time for answers."""
    with cluster.started(cluster.mpirun(2, *serve_arguments(cluster)), stderr=subprocess.PIPE) as server:
        url_of(server)
        pids = ranks_of(server.pid)
        server.terminate()
        server.wait(10)
        expect(all_end(pids.values()), 'ranks go on after mpirun was terminated', server.stderr.read())
