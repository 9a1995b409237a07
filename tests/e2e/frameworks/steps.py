"""Notes for a test how far a rank has got. Where the test asks for nothing, nothing is written."""
import os


def begin_step(step):
    folder = os.environ.get("STEPS_FOLDER")
    if folder:
        with open(f"{folder}/begun.{os.environ['RANK']}", "w") as file:
            file.write(str(step))
