#!/usr/bin/env python3
"""
test_many_machines.py CHAT MAKE_MODEL DOCUMENT: runs the commands of docs/many-machines.md: GNU parallel with local jobs
and over ssh to this machine, and Slurm with its two daemons. A test is skipped where its programs cannot run.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from support.chat_case import ChatCase
from support.program_case import PROGRAM, main

with open(sys.argv.pop(3), encoding='utf-8') as document:
    BLOCKS = re.findall(r'^```sh\n(.*?)^```$', document.read(), re.S | re.M)
N_PROMPTS, N_PARTS = 20, 5
RESULT = ('id', 'text', 'finish', 'error')  # the members of an answer that do not depend on its neighbours

# Stands for bitnet-chat in the PATH: records each start, fails once for a part, waits in another part for a file.
WRAPPER = '''#!/bin/sh
if [ "$1" != --batch ]; then exec {program} "$@"; fi
input=$(cat)
first=$(printf '%s\\n' "$input" | head -n 1)
echo "$first" >> {folder}/started
case $first in *'"fails-once"'*) if mkdir {folder}/failed 2> /dev/null; then echo broken; exit 1; fi ;; esac
case $first in *'"waits"'*)
    echo $$ > {folder}/waiting
    while [ -e {folder}/started ] && [ ! -e {folder}/gate ]; do sleep 0.02; done ;;
esac
printf '%s\\n' "$input" | {program} "$@"
'''


def block(words):
    """The block of commands of the document that contains the words."""
    found = [text for text in BLOCKS if words in text]
    assert len(found) == 1, (words, len(found))
    return found[0]


def needs(*programs):
    missing = [name for name in programs if not shutil.which(name, path=os.environ['PATH'] + ':/usr/sbin:/sbin')]
    return unittest.skipIf(missing, f'{", ".join(missing)} not found')


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Machines(ChatCase):
    def setUp(self):
        super().setUp()
        self.work = os.path.join(self.home.name, 'work')
        programs = os.path.join(self.home.name, 'bin')
        os.makedirs(programs)
        os.makedirs(self.work)
        self.put('bin/bitnet-chat', WRAPPER.format(program=PROGRAM, folder=self.home.name), 0o755)
        inspect = os.path.join(os.path.dirname(PROGRAM), 'bitnet-inspect')
        os.symlink(inspect, os.path.join(programs, 'bitnet-inspect'))
        self.search_path = f'{programs}:{os.environ["PATH"]}:/usr/sbin:/sbin'
        self.env.update(PATH=self.search_path, PARALLEL_HOME=os.path.join(self.home.name, 'parallel'), SHELL='/bin/sh')
        os.makedirs(os.path.join(self.home.name, 'parallel'))
        self.put('parallel/will-cite', '')

    def put(self, name, text, mode=0o600):
        path = os.path.join(self.home.name, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def get(self, name):
        with open(os.path.join(self.home.name, name), encoding='utf-8') as file:
            return file.read()

    def start(self, name, words, **more):
        """Start a command of the document, in a session of its own."""
        script = self.put(name, self.text_of(words))
        return subprocess.Popen(['bash', '-eu', script], cwd=self.work, env=self.env, stdin=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, start_new_session=True, **more)

    def text_of(self, words):
        text = block(words).replace('/opt/models/model.gguf', self.model).replace('-l 64', '-l 4')
        return text.replace('--json ', '--json -n 3 ')

    def runs(self, words, code=0):
        process = self.start('script', words, stdout=subprocess.PIPE)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, code, (out, err))
        return out.decode()

    def prepare(self, special=None):
        """Write the prompts and split them. `special`: {index of a part: the id of its first prompt}."""
        ids = [f'p-{i}' for i in range(N_PROMPTS)]
        for part, name in (special or {}).items():
            ids[4 * part] = name
        self.prompts = [{'id': name, 'prompt': f'question {i}'} for i, name in enumerate(ids)]
        self.put('work/prompts.jsonl', ''.join(json.dumps(p) + '\n' for p in self.prompts))
        self.runs('split -l')
        self.assertEqual(len(os.listdir(os.path.join(self.work, 'parts'))), N_PARTS)

    def expected(self):
        lines = self.get('work/prompts.jsonl').encode()
        return self.clean(self.says('--batch', '4', '--json', '--seed', '1', '-n', '3', stdin=lines).decode())

    @staticmethod
    def clean(text):
        rows = [json.loads(line) for line in text.splitlines()]
        return [{key: row.get(key) for key in RESULT} for row in rows]

    def is_complete(self):
        """The answers are those of one process for all prompts, in the order of the prompts."""
        self.assertEqual(self.clean(self.get('work/answers.jsonl')), self.expected())

    def crashes(self, process):
        """
        End the run as a crash of the machine does: the process that starts the jobs, and the job that waits. GNU
        parallel starts each job in a process group of its own. A job that survived would write its answers into the
        file of the job that replaces it.
        """
        pid = os.path.join(self.home.name, 'waiting')
        self.wait_for(lambda: os.path.exists(pid) and self.get('waiting').endswith('\n'))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        os.kill(int(self.get('waiting')), signal.SIGKILL)

    def starts(self):
        return [json.loads(line)['id'] for line in self.get('started').splitlines()]


@needs('parallel')
class Parallel(Machines):
    LOCAL = 'parallel -j 8 --joblog'

    def test_eight_local_jobs_keep_the_order(self):
        self.prepare()
        self.runs('parallel -j 8 --keep-order')
        self.is_complete()

    def test_eight_local_jobs_are_logged(self):
        self.prepare()
        self.runs(self.LOCAL)
        self.runs('cat answers/')
        self.is_complete()
        self.assertEqual(len(self.get('work/jobs.log').splitlines()), 1 + N_PARTS)

    def test_a_failed_job_runs_again(self):
        self.prepare({2: 'fails-once'})
        self.runs(self.LOCAL)
        self.runs('cat answers/')
        self.is_complete()
        self.assertEqual(self.starts().count('fails-once'), 2)
        self.assertNotIn('broken', self.get('work/answers/00002.jsonl'))

    def test_a_killed_run_continues(self):
        self.prepare({1: 'waits'})
        first = self.start('killed', self.LOCAL, stdout=subprocess.DEVNULL)
        log = os.path.join(self.work, 'jobs.log')
        self.wait_for(lambda: os.path.exists(log) and len(self.get('work/jobs.log').splitlines()) == N_PARTS, 120)
        self.crashes(first)
        self.put('gate', '')
        self.runs(self.LOCAL)
        self.runs('cat answers/')
        self.is_complete()
        self.assertEqual(sorted(self.starts()), sorted(['p-0', 'waits', 'waits', 'p-8', 'p-12', 'p-16']))

    def test_a_prompt_that_is_refused_fails_only_its_job(self):
        self.prepare()
        lines = self.get('work/parts/00003.jsonl').splitlines()
        lines[3] = json.dumps({'id': 'bad', 'prompt': 'x' * 900})
        self.put('work/parts/00003.jsonl', '\n'.join(lines) + '\n')
        self.runs(self.LOCAL, code=1)
        rows = self.clean(self.get('work/answers/00003.jsonl'))
        self.assertEqual([row['id'] for row in rows], ['p-12', 'p-13', 'p-14', 'bad'])
        self.assertIn('context', rows[3]['error'])
        self.assertEqual(len(self.get('work/answers/00004.jsonl').splitlines()), 4)


@needs('parallel', 'sshd', 'ssh', 'ssh-keygen', 'rsync')
class Ssh(Machines):
    """Two names of this machine, with an ssh server of the test."""

    def setUp(self):
        super().setUp()
        port, folder = free_port(), self.home.name
        for name in ('host_key', 'user_key'):
            words = ['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', os.path.join(folder, name)]
            subprocess.run(words, check=True)
        shutil.copy(os.path.join(folder, 'user_key.pub'), os.path.join(folder, 'authorized'))
        if os.geteuid() == 0:
            os.makedirs('/run/sshd', exist_ok=True)
        server = self.put('sshd_config', f'''
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized
StrictModes no
UsePAM no
PidFile none
MaxStartups 100
SetEnv PATH={self.search_path} HOME={folder}
''')
        client = self.put('ssh_config', f'''
Host alpha beta
HostName 127.0.0.1
Port {port}
IdentityFile {folder}/user_key
IdentitiesOnly yes
UserKnownHostsFile {folder}/known
StrictHostKeyChecking no
LogLevel ERROR
BatchMode yes
''')
        daemon = shutil.which('sshd', path=self.search_path)
        self.server = subprocess.Popen([daemon, '-D', '-e', '-f', server], stderr=subprocess.PIPE)
        self.addCleanup(self.end_server)
        self.env['PARALLEL_SSH'] = f'ssh -F {client}'
        for _ in range(100):
            done = subprocess.run(['ssh', '-F', client, 'beta', 'true'], stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, check=False)
            if done.returncode == 0 or self.server.poll() is not None:
                break
            time.sleep(0.05)
        if done.returncode != 0:
            self.skipTest(f'no ssh server can be started: {done.stderr.decode()}')
        self.put('work/hosts', '1/alpha\n1/beta\n')

    def end_server(self):
        self.server.kill()
        self.server.communicate()

    def test_the_machines_are_checked(self):
        out = self.runs('parallel --nonall')
        for name in ('alpha', 'beta'):
            self.assertRegex(out, rf'(?m)^{name}\tbitnet-chat \d')

    def test_jobs_run_on_both_machines(self):
        self.prepare({1: 'fails-once'})
        self.runs('parallel --sshloginfile')
        self.runs('cat answers/')
        self.is_complete()
        rows = [line.split('\t') for line in self.get('work/jobs.log').splitlines()[1:]]
        self.assertEqual({row[1] for row in rows}, {'alpha', 'beta'})
        self.assertEqual(self.starts().count('fails-once'), 2)
        self.assertEqual(len(os.listdir(os.path.join(self.work, 'parts'))), N_PARTS)

    def test_a_killed_run_continues(self):
        self.prepare({3: 'waits'})
        first = self.start('killed', 'parallel --sshloginfile', stdout=subprocess.DEVNULL)
        log = os.path.join(self.work, 'jobs.log')
        self.wait_for(lambda: os.path.exists(log) and len(self.get('work/jobs.log').splitlines()) == N_PARTS, 120)
        self.crashes(first)
        self.put('gate', '')
        self.runs('parallel --sshloginfile')
        self.runs('cat answers/')
        self.is_complete()
        self.assertEqual(self.starts().count('waits'), 2)
        self.assertEqual(len(self.starts()), N_PARTS + 1)


class Slurm(Machines):
    def script(self):
        return self.put('work/answer.sbatch', self.text_of('#SBATCH'), 0o755)

    @needs('shellcheck')
    def test_shellcheck_has_no_remark(self):
        for number, text in enumerate(BLOCKS):
            path = self.put(f'block{number}', text)
            done = subprocess.run(['shellcheck', '--shell=bash', path], stdout=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, b''), done.stdout.decode())

    @needs('slurmctld', 'slurmd', 'sbatch', 'sinfo', 'munged', 'mungekey')
    def test_an_array_answers_all_parts(self):
        self.start_cluster()
        self.prepare({3: 'fails-once'})
        self.script()
        self.runs('sbatch --wait', code=1)  # one task has failed
        self.assertFalse(os.path.exists(os.path.join(self.work, 'answers/00003.jsonl')))
        self.runs('sbatch --wait')  # only that task does anything
        self.runs('cat answers/')
        self.is_complete()
        self.assertEqual(sorted(self.starts()), sorted(['p-0', 'p-4', 'p-8', 'fails-once', 'fails-once', 'p-16']))

    def daemon(self, *words):
        """Start a daemon that stays in the foreground."""
        with open(os.path.join(self.home.name, words[0] + '.out'), 'wb') as log:
            process = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        def end():
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.addCleanup(end)

    def start_cluster(self):
        folder, user = self.home.name, 'root' if os.geteuid() == 0 else os.environ.get('USER', '')
        if user != 'root':
            self.skipTest('the daemons of Slurm need root')
        os.chmod(folder, 0o755)
        host = socket.gethostname().split('.')[0]
        for name in ('state', 'spool'):
            os.makedirs(os.path.join(folder, name))
        key, munge = os.path.join(folder, 'munge.key'), os.path.join(folder, 'munge.socket')
        subprocess.run(['mungekey', '-c', '-k', key], env=self.env, check=True)
        self.daemon('munged', '--foreground', '--force', f'--key-file={key}', f'--socket={munge}',
                    f'--pid-file={folder}/munged.pid', f'--log-file={folder}/munged.log', f'--seed-file={folder}/seed')
        self.env['SLURM_CONF'] = self.put('slurm.conf', f'''
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
''', 0o644)
        self.wait_for(lambda: os.path.exists(munge))
        self.daemon('slurmctld', '-D')
        self.daemon('slurmd', '-D', '-N', host)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            done = subprocess.run(['sinfo', '-h', '-o', '%t'], env=self.env, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            if done.stdout.strip() == b'idle':
                return
            time.sleep(0.2)
        logs = ''.join(self.get(name)[-600:] for name in ('slurmctld.log', 'slurmd.log')
                       if os.path.exists(os.path.join(folder, name)))
        self.skipTest(f'Slurm cannot be started here: {logs}')


if __name__ == '__main__':
    main()
