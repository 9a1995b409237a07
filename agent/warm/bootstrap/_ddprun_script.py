"""What can be known of a script without running it: its folder, what it hides, and what it imports."""
import os


def folder_of(script):
    """What Python puts first on sys.path."""
    return os.path.dirname(os.path.realpath(script)) if script else os.getcwd()


def hidden_by(folder):
    """The modules that a script in this folder gets from there."""
    found = set()
    try:
        entries = os.listdir(folder) if folder else []
    except OSError:
        entries = []
    for entry in entries:
        stem, dot, suffix = entry.partition(".")
        if dot and suffix.rpartition(".")[2] in ("py", "pyc", "so"):
            found.add(stem)
        elif not dot and any(os.path.exists(os.path.join(folder, entry, "__init__" + end))
                             for end in (".py", ".pyc")):
            found.add(entry)
    return found


def imports_of(script):
    """What a script, and the modules beside it, import at their outer level, in this order."""
    import ast
    folder, found, read = folder_of(script), [], set()

    def local(name):
        path = os.path.join(folder, *name.split("."))
        for file in (path + ".py", os.path.join(path, "__init__.py")):
            if os.path.isfile(file):
                return file
        return None

    def add(name):
        if local(name):
            look(local(name))
        elif name not in found:
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
                text = source.read()
            # A script that changes the path may find other modules than the server would.
            if b"sys.path" in text:
                raise ValueError("sys.path")
            visit(ast.parse(text).body)
        except (OSError, SyntaxError, ValueError, RecursionError):
            pass

    if script:
        look(script)
    return found
