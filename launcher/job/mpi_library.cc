// Reads the dynamic section of a program.
#include "launcher/job/mpi_library.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/system/unique_fd.h"
#include "launcher/job/program_check.h"

namespace ddprun::launcher {
namespace {

// A structure at an offset of the file.
template <class T>
std::optional<T> at(std::string_view file, std::uint64_t offset) {
    if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
    T found;
    std::memcpy(&found, file.data() + offset, sizeof found);
    return found;
}

std::vector<Elf64_Phdr> segments(std::string_view file) {
    const auto head = at<Elf64_Ehdr>(file, 0);
    if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_phentsize != sizeof(Elf64_Phdr))
        return {};
    std::vector<Elf64_Phdr> found;
    for (std::uint64_t i = 0; i < head->e_phnum; ++i)
        if (const auto one = at<Elf64_Phdr>(file, head->e_phoff + i * sizeof(Elf64_Phdr)))
            found.push_back(*one);
    return found;
}

// Where in the file lies what is loaded at this address?
std::optional<std::uint64_t> offset_of(const std::vector<Elf64_Phdr>& all, std::uint64_t address) {
    for (const Elf64_Phdr& one : all)
        if (one.p_type == PT_LOAD && address >= one.p_vaddr && address - one.p_vaddr < one.p_filesz)
            return one.p_offset + (address - one.p_vaddr);
    return std::nullopt;
}

// Maps a file for reading.
class Mapped {
  public:
    explicit Mapped(const std::string& path) {
        const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        struct stat status {};
        if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
        const auto size = static_cast<std::size_t>(status.st_size);
        void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
        if (begin != MAP_FAILED) text_ = {static_cast<const char*>(begin), size};
    }
    ~Mapped() {
        if (!text_.empty()) ::munmap(const_cast<char*>(text_.data()), text_.size());
    }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;

    std::string_view text() const { return text_; }

  private:
    std::string_view text_;
};

}  // namespace

std::vector<std::string> needed_libraries(std::string_view file) {
    const std::vector<Elf64_Phdr> all = segments(file);
    const auto dynamic = std::ranges::find(all, PT_DYNAMIC, &Elf64_Phdr::p_type);
    if (dynamic == all.end()) return {};
    std::vector<std::uint64_t> names;
    std::optional<std::uint64_t> table;
    for (std::uint64_t done = 0; done < dynamic->p_filesz; done += sizeof(Elf64_Dyn)) {
        const auto entry = at<Elf64_Dyn>(file, dynamic->p_offset + done);
        if (!entry || entry->d_tag == DT_NULL) break;
        if (entry->d_tag == DT_NEEDED) names.push_back(entry->d_un.d_val);
        if (entry->d_tag == DT_STRTAB) table = offset_of(all, entry->d_un.d_ptr);
    }
    std::vector<std::string> libraries;
    for (const std::uint64_t name : names) {
        if (!table || *table > file.size() || name >= file.size() - *table) continue;
        const std::string_view rest = file.substr(*table + name);
        libraries.emplace_back(rest.substr(0, rest.find('\0')));
    }
    return libraries;
}

MpiLibrary mpi_among(const std::vector<std::string>& libraries) {
    for (const std::string& name : libraries) {
        if (!name.starts_with("libmpi")) continue;
        if (name.starts_with("libmpich") || name.ends_with(".so.12")) return {name, Mpi::mpich};
        if (name.ends_with(".so.40") || name.ends_with(".so.20")) return {name, Mpi::open_mpi};
    }
    return {};
}

Result<std::string> check_mpi(const Plan& plan, const std::optional<std::string>& path) {
    const std::string& program = plan.workers.argv.front();
    const bool is_path = program.find('/') != std::string::npos;
    const Mapped file(is_path ? program : find_in_path(program, path));
    const auto [library, kind] = mpi_among(needed_libraries(file.text()));
    if (kind == Mpi::open_mpi) {
        const std::string sentence = "program " + program + " is linked to Open MPI (" + library +
                                     "), whose processes find each other by PMIx only: start it "
                                     "with srun --mpi=pmix, or build it with MPICH";
        if (plan.workers.pmi) return usage_error("--pmi: " + sentence);
        return sentence;
    }
    const bool alone = plan.limits.max_nodes == 1 && plan.slots == 1;
    if (kind == Mpi::none || plan.workers.pmi || alone) return std::string();
    return "program " + program + " uses MPI (" + library +
           "), but --pmi is not given: each worker becomes an MPI job of its own";
}

}  // namespace ddprun::launcher
