"""Compiles each changed source alone, as people who edit do: a build of rooms (cmake/rooms.cmake) does not show that a
file lacks an include. Nothing is written but what CMake writes into FOLDER.

    by_itself.py FOLDER [BASE]      sources that changed since BASE (default: origin/main, or 20 commits ago)
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def git(*words):
    return subprocess.run(['git', '-C', ROOT, *words], capture_output=True, text=True)


def changed(base):
    """The sources that differ from BASE, and those of the headers that do: NAME.cc of NAME.h."""
    names = git('diff', '--name-only', '--diff-filter=d', base, '--', '*.cc', '*.h').stdout.split()
    names += git('ls-files', '--others', '--exclude-standard', '--', '*.cc', '*.h').stdout.split()
    return {ROOT / (name[:-2] + '.cc' if name.endswith('.h') else name) for name in names}


def base_of(words):
    """A clone may have few commits, and an archive none."""
    if words:
        return words[0]
    merge = git('merge-base', 'HEAD', 'origin/main').stdout.strip()
    commits = git('rev-list', '--max-count=21', 'HEAD').stdout.split()
    if not commits:
        return ''
    return merge if merge and merge != commits[0] else commits[-1]


def compile_alone(step):
    words = [word for word in step['command'].split(' ') if word]
    words = [word for at, word in enumerate(words) if word != '-o' and (at == 0 or words[at - 1] != '-o')]
    if words[0].endswith('ccache'):
        words = words[1:]
    run = subprocess.run(['bash', '-c', ' '.join([*words, '-fsyntax-only'])], cwd=step['directory'],
                         capture_output=True, text=True)
    return step['file'], run.returncode, run.stderr


def main(folder, *words):
    base = base_of(words)
    if not base:
        print('there is no git repository here, so nothing is known to have changed')
        return 0
    if git('rev-parse', '--verify', base).returncode:
        print(f'there is no commit {base}')
        return 2
    configured = subprocess.run(['cmake', '--preset', 'dev', '-B', folder], cwd=ROOT, capture_output=True, text=True)
    if configured.returncode:
        print(configured.stdout, configured.stderr)
        return 1
    steps = json.loads((pathlib.Path(folder) / 'compile_commands.json').read_text())
    wanted, seen, todo = changed(base), set(), []
    for step in steps:
        if pathlib.Path(step['file']) in wanted and step['file'] not in seen:
            seen.add(step['file'])
            todo.append(step)
    # What CMake and protoc write, and headers that are compiled once, are made first.
    first = ['commit', 'agent_link_proto', 'etcd_proto', 'control_proto', 'test_headers']
    made = subprocess.run(['ninja', '-C', folder, '-j', str(os.cpu_count()), *(f'ddprun_{name}' for name in first)],
                          capture_output=True, text=True)
    if made.returncode:
        print(made.stdout[-5000:], made.stderr)
        return 1
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, code, said in pool.map(compile_alone, todo):
            if code:
                failed += 1
                print(f'{file} does not compile alone:\n{said}')
    print(f'{len(todo)} sources changed since {base}; {failed} of them do not compile alone')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
