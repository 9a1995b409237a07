// Looks up a symbol in the hash table that the dynamic loader uses.
#include "diagnosis/stacks/elf_symbol.h"

#include <elf.h>

#include <algorithm>

namespace ddprun::agent {
namespace {

// Broken files must not keep the reader busy.
constexpr std::size_t kHeaders = 64, kDynamicEntries = 256, kChain = 4096;

struct Tables {
    Address hash = 0, symbols = 0, names = 0;
};

// The difference between the addresses in the file and those in memory; the dynamic section.
struct Image {
    Address bias = 0, dynamic = 0;
};

std::optional<Image> image_at(Memory& memory, Address load) {
    const auto header = memory.value<Elf64_Ehdr>(load);
    if (!header || !std::equal(ELFMAG, ELFMAG + SELFMAG, header->e_ident) ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr))
        return std::nullopt;
    Image image;
    bool loaded = false;
    for (std::size_t i = 0; i < std::min<std::size_t>(header->e_phnum, kHeaders); ++i) {
        const auto segment =
            memory.value<Elf64_Phdr>(load + header->e_phoff + i * sizeof(Elf64_Phdr));
        if (!segment) return std::nullopt;
        if (segment->p_type == PT_LOAD && !loaded) {
            image.bias = load - (segment->p_vaddr - segment->p_offset);
            loaded = true;
        }
        if (segment->p_type == PT_DYNAMIC) image.dynamic = segment->p_vaddr;
    }
    if (!loaded || image.dynamic == 0) return std::nullopt;
    image.dynamic += image.bias;
    return image;
}

// glibc's loader replaces the addresses of the tables by those in memory, other loaders do not.
Address in_memory(Address address, const Image& image) {
    return address < image.bias ? address + image.bias : address;
}

Tables tables_of(Memory& memory, const Image& image) {
    Tables tables;
    for (std::size_t i = 0; i < kDynamicEntries; ++i) {
        const auto entry = memory.value<Elf64_Dyn>(image.dynamic + i * sizeof(Elf64_Dyn));
        if (!entry || entry->d_tag == DT_NULL) break;
        const Address address = in_memory(entry->d_un.d_ptr, image);
        if (entry->d_tag == DT_GNU_HASH) tables.hash = address;
        if (entry->d_tag == DT_SYMTAB) tables.symbols = address;
        if (entry->d_tag == DT_STRTAB) tables.names = address;
    }
    return tables;
}

std::uint32_t gnu_hash(std::string_view name) {
    std::uint32_t hash = 5381;
    for (const char letter : name) hash = hash * 33 + static_cast<unsigned char>(letter);
    return hash;
}

bool has_name(Memory& memory, Address at, std::string_view name) {
    std::string found(name.size() + 1, 'x');
    return memory.read(at, found.data(), found.size()) && found.back() == '\0' &&
           std::string_view(found).substr(0, name.size()) == name;
}

}  // namespace

// The table: a header, a Bloom filter, the first symbol of each bucket, and the hashes of all
// symbols, in which the lowest bit marks the end of a bucket.
Address elf_symbol(Memory& memory, Address load, std::string_view name) {
    const auto image = image_at(memory, load);
    if (!image) return 0;
    const Tables tables = tables_of(memory, *image);
    struct Header {
        std::uint32_t buckets, first_symbol, filter_words, filter_shift;
    };
    if (tables.hash == 0 || tables.symbols == 0 || tables.names == 0) return 0;
    const auto header = memory.value<Header>(tables.hash);
    if (!header || header->buckets == 0) return 0;
    const Address buckets =
        tables.hash + sizeof(Header) + Address{header->filter_words} * sizeof(Elf64_Xword);
    const Address chains = buckets + Address{header->buckets} * sizeof(std::uint32_t);
    const std::uint32_t hash = gnu_hash(name);
    const auto first =
        memory.value<std::uint32_t>(buckets + hash % header->buckets * sizeof(std::uint32_t));
    if (!first || *first < header->first_symbol) return 0;
    for (std::uint32_t i = *first; i < *first + kChain; ++i) {
        const auto link = memory.value<std::uint32_t>(chains + Address{i - header->first_symbol} *
                                                                   sizeof(std::uint32_t));
        if (!link) return 0;
        if ((*link | 1) == (hash | 1)) {
            const auto symbol =
                memory.value<Elf64_Sym>(tables.symbols + Address{i} * sizeof(Elf64_Sym));
            if (symbol && symbol->st_shndx != SHN_UNDEF &&
                has_name(memory, tables.names + symbol->st_name, name))
                return symbol->st_value + image->bias;
        }
        if (*link & 1) break;
    }
    return 0;
}

}  // namespace ddprun::agent
