// Writes down what is read from the memory of a CPython process when its stacks are read, for
// python_stack_test: record_memory PID > memory/3.11.txt
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "diagnosis/stacks/process_memory.h"
#include "diagnosis/stacks/python_process.h"

namespace {

class Recorder : public ddprun::agent::Memory {
  public:
    explicit Recorder(std::int64_t pid) : memory_(pid) {}
    bool read(ddprun::agent::Address from, void* to, std::size_t size) override {
        if (!memory_.read(from, to, size)) return false;
        std::printf("%" PRIx64 " ", from);
        for (std::size_t i = 0; i < size; ++i)
            std::printf("%02x", static_cast<unsigned char*>(to)[i]);
        std::printf("\n");
        return true;
    }

  private:
    ddprun::agent::ProcessMemory memory_;
};

}  // namespace

int main(int count, char** words) {
    using namespace ddprun::agent;
    if (count != 2) return 64;
    const std::int64_t pid = std::atoll(words[1]);
    for (const LoadedFile& file : loaded_files(pid)) {
        Recorder memory(pid);
        const PythonRuntime runtime = find_python(memory, file.load, file.name);
        const auto layout = python_layout(memory, runtime);
        if (!layout) continue;
        python_stack(memory, runtime, *layout);
        std::printf("%s %" PRIx64 "\n", file.name.c_str(), file.load);
        return 0;
    }
    return 1;
}
