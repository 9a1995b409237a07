// The table of known error texts.
#include "agent/death/known_words.h"

namespace ddprun::agent {
namespace {

struct Known {
    const char* words;
    const char* meaning;
};

// Each text is fixed by a library or the system, so it can be searched for literally.
constexpr Known kKnown[] = {
    {"No space left on device", "a file system is full: see df -h and df -i, /dev/shm too"},
    {"Disk quota exceeded", "the user's quota is used up: see quota -s"},
    {"error while loading shared libraries",
     "a library that the program needs is missing on this node: see ldd and LD_LIBRARY_PATH"},
    {"version `GLIBC", "the program was built for a newer system than this node's"},
    {"CUDA out of memory", "the GPU's memory is full, not the host's: see nvidia-smi"},
    {"no kernel image is available", "the program was not built for this node's GPU"},
    {"No module named", "a Python module is missing in this node's environment"},
    {"Too many open files", "the limit of open files is reached: see ulimit -n"},
    {"ProcessGroupNCCL is only supported with GPUs",
     "there is no GPU here: use the backend gloo, or ask Slurm for GPUs (--gpus-per-node)"},
    {"nccl2 requires at least one CUDA device",
     "there is no GPU here: use the backend gloo, or ask Slurm for GPUs (--gpus-per-node)"},
    {"bdb.BdbQuit",
     "its debugger was left, or could not read the keyboard (srun --pty gives a terminal)"},
    {"Cannot allocate memory", "the host's memory, or a limit on it, is used up: see ulimit -a"},
};

const char* meaning_of(const std::string& line) {
    for (const Known& known : kKnown)
        if (line.find(known.words) != std::string::npos) return known.meaning;
    return nullptr;
}

}  // namespace

std::string known_words(const std::string& error, const std::vector<std::string>& tail) {
    if (const char* meaning = meaning_of(error)) return meaning;
    // From the newest line backwards: the last message is the closest to the end.
    for (auto line = tail.rbegin(); line != tail.rend(); ++line)
        if (const char* meaning = meaning_of(*line)) return meaning;
    return {};
}

}  // namespace ddprun::agent
