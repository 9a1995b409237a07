// The Python files are a part of ddprun. The interpreter reads them from a file without a name, and
// a few words on its command line make a package of them.
#include "rehearsal/rehearse.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/system/memory_file.h"
#include "base/system/unique_fd.h"
#include "rehearsal/program_files.h"

namespace ddprun::rehearsal {
namespace {

// Each file is its name, its length and its text. A module is run when it is imported first.
constexpr const char* kLoader = R"(import importlib.abc, importlib.util, os, sys
size = os.lseek(int(sys.argv[1]), 0, 2)
data, files = os.pread(int(sys.argv[1]), size, 0), {}
os.close(int(sys.argv[1]))
while data:
    head, data = data.split(b"\n", 1)
    name, length = head.decode().split()
    files["ddprun_rehearsal." + name], data = data[:int(length)].decode(), data[int(length):]
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name == "ddprun_rehearsal" or name in files:
            return importlib.util.spec_from_loader(name, self, is_package="." not in name)
    def create_module(self, spec): return None
    def exec_module(self, module):
        exec(compile(files.get(module.__name__, ""), module.__name__, "exec"), module.__dict__)
sys.meta_path.insert(0, Finder())
from ddprun_rehearsal.main import main
sys.exit(main(sys.argv[2:])))";

}  // namespace

Error rehearse(const std::string& python, const std::vector<std::string>& order) {
    std::string bytes;
    for (const ProgramFile& file : program_files())
        bytes += std::string(file.name) + " " + std::to_string(file.text.size()) + "\n" +
                 std::string(file.text);
    auto memory = memory_file(bytes);
    if (!memory) return memory.error();
    const int number = memory->get();
    ::fcntl(number, F_SETFD, 0);
    std::vector<std::string> words{python, "-I", "-B", "-c", kLoader, std::to_string(number)};
    words.insert(words.end(), order.begin(), order.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    ::execvp(python.c_str(), pointers.data());
    return Error(ErrorCode::unavailable,
                 "--rehearse: " + python + " cannot be started: " + std::strerror(errno));
}

}  // namespace ddprun::rehearsal
