#!/usr/bin/env python3
"""How torchrun's parser takes each spelling of each option, recorded into tests/data/torchrun/spellings.txt.

    spellings.py RUN.PY…    torch/distributed/run.py of one or more versions, in their packages or without them

Only two files of a version are needed, run.py and the argparse_util.py beside it: all else that it imports is replaced
by stand-ins, since the parser uses none of it. Each prefix of each option is asked, with dashes and with underscores. A
line has the spelling, the option it is taken for (its first name, with dashes), and the versions that agree; `?` is a
spelling that could be several."""
import argparse
import importlib.util
import pathlib
import re
import sys
import unittest.mock

OUT = pathlib.Path(__file__).resolve().parents[1] / "data/torchrun/spellings.txt"


class Refused(Exception):
    pass


class StandIns:
    """Finds every module below torch that is not the one we came for."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torchrun_stand_in"):
            return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        module = unittest.mock.MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module

    def exec_module(self, module):
        pass


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def parser_of(run):
    for name in [n for n in sys.modules if n.split(".")[0] == "torch"]:
        del sys.modules[name]
    load("torch.distributed.argparse_util", run.parent / "argparse_util.py")
    parser = load("torch.distributed.run", run).get_args_parser()

    def refuse(message):
        raise Refused(message)

    parser.error = refuse
    return parser


def version_of(run):
    text = (run.parents[1] / "version.py").read_text()
    return re.search(r"^__version__ = '([0-9.]+)", text, re.M)[1]


def first_name(action):
    return next(s for s in action.option_strings if s.startswith("--")).replace("_", "-")


def spellings(parser):
    """Every prefix of every long option, and every letter."""
    found = set()
    for action in parser._actions:
        for name in action.option_strings:
            if name.startswith("--"):
                found |= {name[:length] for length in range(3, len(name) + 1)}
                found |= {name[:length].replace("-", "_").replace("__", "--", 1) for length in range(3, len(name) + 1)
                          if not name[:length].endswith("-")}
            else:
                found.add(name)
    return sorted(found)


def taken_for(parser, spelling):
    try:
        taken = parser._parse_optional(spelling)
    except Refused:
        return "?"
    if isinstance(taken, list):  # Python 3.12 and newer
        taken = taken[0] if len(taken) == 1 else None
    return first_name(taken[0]) if taken and taken[0] else None


def main(*paths):
    sys.meta_path.insert(0, StandIns())
    answers = {}
    for path in sorted(map(pathlib.Path, paths), key=lambda p: [int(n) for n in version_of(p).split(".")]):
        parser, version = parser_of(path), version_of(path)
        for spelling in spellings(parser):
            option = taken_for(parser, spelling)
            if option:
                answers.setdefault((spelling, option), []).append(version)
    OUT.write_text("".join(f"{spelling} {option} {' '.join(versions)}\n"
                           for (spelling, option), versions in sorted(answers.items())))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if sys.argv[1:] else __doc__)
