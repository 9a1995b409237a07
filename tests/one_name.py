"""Fails when two sources of a unit have a function of their own with the same name.

A build of rooms compiles the sources of a room as one unit (cmake/rooms.cmake). What stands in a nameless namespace in
one file is then seen in those behind it. The compiler refuses two types, two constants, and two functions with the same
parameters. Two functions that differ in their parameters it takes, and a call may reach the other file's. So a name is
that of a function in one file of a unit only, and not that of a function which an included header declares in the same
namespace.

    one_name.py ROOT UNIT=FILE,FILE… …      the units, as cmake/rooms.cmake keeps them
"""
import pathlib
import re
import sys

NAMESPACE = re.compile(r'^namespace (?:([\w:]+) )?\{$')
# In the first column, where clang-format leaves it.
FUNCTION = re.compile(r'^(?!using|template|typedef|static_assert|extern|TEST|INSTANTIATE|EXPECT)'
                      r'\w[\w:<>,*&\s]*?[\s*&](\w+)\(')


def functions(text):
    """(namespace, name, whether it has a nameless namespace around it) of the functions of a file."""
    spaces = []
    for line in text.splitlines():
        if found := NAMESPACE.match(line):
            spaces.append(found[1])
        elif line.startswith('}  // namespace') and spaces:
            spaces.pop()
        elif found := FUNCTION.match(line):
            yield '::'.join(filter(None, spaces)), found[1], None in spaces


class Headers:
    """What the headers that a file includes declare, with those that they include."""

    def __init__(self, root):
        self.root, self.texts = root, {}

    def text(self, path):
        if path not in self.texts:
            file = self.root / path
            self.texts[path] = file.read_text() if file.is_file() else ''
        return self.texts[path]

    def included(self, path, seen):
        for name in re.findall(r'^#include "([^"]+)"', self.text(path), re.MULTILINE):
            if name not in seen:
                seen.add(name)
                self.included(name, seen)
        return seen

    def declared(self, files):
        headers = set()
        for file in files:
            self.included(file, headers)
        return {(space, name): header for header in sorted(headers) for space, name, _ in functions(self.text(header))}


def main(root, units):
    headers, found = Headers(pathlib.Path(root)), []
    for unit in units:
        files, seen = unit.split('=')[1].split(','), {}
        declared = headers.declared(files)
        for file in files:
            for space, name, nameless in functions(headers.text(file)):
                if not nameless:
                    continue
                other = seen.setdefault((space, name), file)
                if other != file:
                    found.append(f'{file}: {name}() is also a function of {other}; give one of them another name')
                if (space, name) in declared:
                    found.append(f'{file}: {name}() is also declared by {declared[space, name]}; give it another name')
    print('\n'.join(dict.fromkeys(found)))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2:]))
