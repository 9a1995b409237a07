// Runs a fuzz target over the files of a folder, for builds without libFuzzer: what was found once stays
// tested everywhere.
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
        std::cout << entry.path().filename().string() << std::endl;  // the last one is the culprit
        LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
        ++count;
    }
    if (count > 0) return 0;
    std::cerr << "no files in " << (argc > 1 ? argv[1] : ".") << '\n';
    return 1;
}
