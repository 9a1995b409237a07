"""What can be known of a script without running it: where its modules are looked for, and what it imports."""
import os
import sys

from _ddprun_proved import is_listed


def path_of(plan):
    """What Python puts before sys.path when the script begins (a plan has lists "script" and "module")."""
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        return []
    script = "".join(plan["script"])
    if not script:
        return [os.getcwd() if plan["module"] else ""]
    if os.path.isdir(script) or script.endswith((".zip", ".pyz")):
        return [script]
    return [os.path.dirname(os.path.realpath(script))]


def listed_imports_of(script):
    """What a script, and the modules beside it, import of the list at their outer level, in this order. It is read in
    a process of its own: what that takes of Python would be there in the workers, too."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, "\n".join(_read(script)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as names:
        found = names.read().split("\n")
    os.waitpid(child, 0)
    return [name for name in found if name]


def _read(script):
    import ast
    folder, found, read = os.path.dirname(os.path.realpath(script)), [], set()

    def local(name):
        path = os.path.join(folder, *name.split("."))
        return next((file for file in (path + ".py", os.path.join(path, "__init__.py")) if os.path.isfile(file)), None)

    def add(name):
        if local(name):
            look(local(name))
        elif is_listed(name) and name not in found:
            found.append(name)

    def visit(statements):
        for each in statements:
            if isinstance(each, ast.Import):
                for alias in each.names:
                    add(alias.name)
            elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
                add(each.module)
            elif not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                for part in ("body", "orelse", "handlers", "finalbody"):
                    visit(getattr(each, part, []))

    def look(file):
        if file in read:
            return
        read.add(file)
        try:
            with open(file, "rb") as source:
                visit(ast.parse(source.read()).body)
        except (OSError, SyntaxError, ValueError, RecursionError):
            pass

    if script:
        look(script)
    return found
