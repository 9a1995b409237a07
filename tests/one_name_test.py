"""one_name.py finds the names that it is for, and no others."""
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
FORM = 'namespace room {{\nnamespace {{\n\n{}\n}}  // namespace\n}}  // namespace room\n'
FIRST = '#include "lib/part.h"\n' + FORM.format('int size_of(const Part& part) { return 1; }\n')
CASES = [  # the second file, the header, what is said
    ('int size_of(int whole) { return 2; }', '', 'two.cc: size_of() is also a function of one.cc'),
    ('int other(int whole) { return size_of(whole); }', '', ''),
    ('int other(int whole) { return 2; }', 'int other(const Part&);', 'two.cc: other() is also declared by lib/part.h'),
    ('int other(int whole) { return 2; }', 'int third(const Part&);', ''),
]

for second, header, said in CASES:
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        (root / 'lib').mkdir()
        (root / 'one.cc').write_text(FIRST)
        (root / 'two.cc').write_text(FORM.format(second + '\n'))
        (root / 'lib' / 'part.h').write_text('namespace room {\n' + header + '\n}  // namespace room\n')
        run = subprocess.run([sys.executable, HERE / 'one_name.py', root, 'room=one.cc,two.cc'], capture_output=True,
                             text=True)
        assert run.returncode == bool(said) and said in run.stdout, (second, header, run)
