"""A build folder in which each source is a unit of its own, for what changes one source and links it anew."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def single_files(build):
    """`build` itself; or single_files/ in it, configured with the preset dev, where `build` compiles whole rooms."""
    cache = Path(build, "CMakeCache.txt")
    if not cache.exists() or not re.search(r"^DDPRUN_UNITY:\w+=ON$", cache.read_text(), re.M):
        return Path(build)
    folder = Path(build, "single_files")
    launcher = re.findall(r"^(CMAKE_CXX_COMPILER_LAUNCHER):\w+=(.+)$", cache.read_text(), re.M)
    subprocess.run(["cmake", "--preset", "dev", "-B", folder, *(f"-D{name}={value}" for name, value in launcher)],
                   cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return folder
