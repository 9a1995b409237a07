// Runs a fuzz target over the files of a folder. Builds without libFuzzer test the corpus this way,
// so an input that once made a target fail stays tested with every compiler and sanitizer.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

int main(int argc, char** argv) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(argc > 1 ? argv[1] : ".")) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string bytes(std::istreambuf_iterator<char>(file), {});
        // A failing target aborts, so the last name printed is that of the failing file.
        std::cout << entry.path().filename().string() << std::endl;
        LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
        ++count;
    }
    // A wrong path must not look like a success.
    if (count > 0) return 0;
    std::cerr << "no files in " << (argc > 1 ? argv[1] : ".") << '\n';
    return 1;
}
