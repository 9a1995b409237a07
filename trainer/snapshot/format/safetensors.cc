// Composes headers and parses files of the safetensors format.
#include "trainer/snapshot/format/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "base/count_text.h"
#include "trainer/snapshot/format/savable.h"

namespace ddprun::trainer {
namespace {

using Json = nlohmann::json;

// The data begin at a multiple of this.
constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the reference reader's limit
constexpr char kMetadata[] = "__metadata__";
constexpr char kSlicesKey[] = "slices";  // a key of the metadata

Error bad(const std::string& sentence) {
    return Error(ErrorCode::malformed, "safetensors: " + sentence);
}

// The bytes that a shape needs. Empty if they do not fit in 64 bits: a made-up shape must not wrap
// around to a small number.
std::optional<std::uint64_t> data_bytes(DataType type, const Extents& shape) {
    auto bytes = elements_of(shape);
    if (bytes && __builtin_mul_overflow(*bytes, size_of(type), &*bytes)) return std::nullopt;
    return bytes;
}

Rectangle rectangle_of_slice(const TensorView& slice) { return {slice.place->offset, slice.shape}; }

// What the metadata say of the slices. Empty if there are none.
std::string slices_text(const std::vector<TensorView>& tensors) {
    Json slices = Json::object();
    for (const auto& tensor : tensors)
        if (tensor.is_part())
            slices[key_of(tensor)] = {{"tensor", tensor.name},
                                      {"whole", tensor.place->whole},
                                      {"offset", tensor.place->offset}};
    return slices.empty() ? "" : slices.dump();
}

// Byte by byte, so that it does not depend on the byte order of the machine.
std::string length_prefix(std::uint64_t length) {
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
    return bytes;
}

std::uint64_t read_length(std::span<const std::byte> file) {
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | std::to_integer<std::uint64_t>(file[i]);
    return length;
}

// The JSON header. The parser gets no exceptions (`false`): wrong text then yields a "discarded"
// value, which is no object.
Result<Json> parse_header(std::span<const std::byte> file) {
    if (file.size() < 8)
        return bad("the file has " + std::to_string(file.size()) +
                   " bytes; the header's length alone needs 8");
    const std::uint64_t length = read_length(file);
    if (length > kLongestHeader || length > file.size() - 8) {
        return bad("the header's length " + std::to_string(length) + " is more than the file's " +
                   std::to_string(file.size()) + " bytes or than the format allows");
    }
    const char* text = reinterpret_cast<const char*>(file.data()) + 8;
    // The format requires it, and forbids spaces before it.
    if (length == 0 || *text != '{') return bad("the header does not begin with {");
    Json header = Json::parse(text, text + length, nullptr, false);
    if (!header.is_object()) return bad("the header is not a JSON object");
    return header;
}

Result<Metadata> metadata_from(const Json& value) {
    Metadata metadata;
    if (!value.is_object()) return bad("__metadata__ is not an object");
    for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return bad("__metadata__ \"" + key + "\" is not a string");
        metadata[key] = text.get<std::string>();
    }
    return metadata;
}

// The type is checked before get(): nlohmann throws on a wrong one, and converts a negative number.
bool is_list_of_unsigned(const Json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& item) {
               return item.is_number_unsigned();
           });
}

// One tensor of the header. `data` are the bytes after the header.
Result<TensorView> parse_entry(const std::string& name, const Json& entry,
                               std::span<const std::byte> data) {
    const std::string place = "tensor \"" + name + "\"";
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !is_list_of_unsigned(entry["shape"]) ||
        !entry.contains("data_offsets") || !is_list_of_unsigned(entry["data_offsets"]) ||
        entry["data_offsets"].size() != 2) {
        return bad(place + " lacks a proper dtype, shape or data_offsets");
    }
    const std::string dtype = entry["dtype"].get<std::string>();
    auto type = data_type_of(dtype);
    if (!type) return bad(place + " has dtype " + dtype + ", which this reader does not know");
    TensorView view{name, *type, entry["shape"].get<std::vector<std::uint64_t>>(), {}};
    // Offsets count from the end of the header.
    const auto begin = entry["data_offsets"][0].get<std::uint64_t>();
    const auto end = entry["data_offsets"][1].get<std::uint64_t>();
    // Checked before subspan(), which does not check.
    if (begin > end || end > data.size()) return bad(place + " lies outside the file");
    auto bytes = data_bytes(*type, view.shape);
    if (!bytes || *bytes != end - begin)
        return bad(place + " has " + std::to_string(end - begin) +
                   " bytes, not those of its shape");
    view.data = data.subspan(begin, end - begin);
    return view;
}

// Gives the slices their tensors' names, and their places.
Result<void> find_places(Safetensors& file) {
    const auto text = file.metadata.find(kSlicesKey);
    if (text == file.metadata.end()) return {};
    const Json slices = Json::parse(text->second, nullptr, false);
    if (!slices.is_object()) return bad("the metadata's \"slices\" are not a JSON object");
    for (auto& tensor : file.tensors) {
        if (!slices.contains(tensor.name)) continue;
        const Json& slice = slices[tensor.name];
        const bool whole = slice.is_object() && slice.contains("tensor") &&
                           slice["tensor"].is_string() && slice.contains("whole") &&
                           is_list_of_unsigned(slice["whole"]) && slice.contains("offset") &&
                           is_list_of_unsigned(slice["offset"]);
        if (!whole) return bad("slice \"" + tensor.name + "\" lacks tensor, whole or offset");
        tensor.place = Place{slice["whole"].get<Extents>(), slice["offset"].get<Extents>()};
        if (!lies_in(rectangle_of_slice(tensor), tensor.place->whole))
            return bad("slice \"" + tensor.name + "\" lies outside its tensor");
        tensor.name = slice["tensor"].get<std::string>();
    }
    // Said by the places from here on; those of several files would not fit into one map.
    file.metadata.erase(text);
    return {};
}

// The tensors must cover the data without a gap, an overlap or a rest. The format demands it:
// hidden bytes could hold another format, and overlaps could make two names share memory.
Result<void> check_coverage(const Safetensors& file, std::span<const std::byte> data) {
    const std::byte* next = data.data();
    for (const auto& tensor : file.tensors) {
        if (tensor.data.data() != next)
            return bad("tensor \"" + tensor.name + "\" leaves a hole or overlaps another");
        next += tensor.data.size();
    }
    if (next != data.data() + data.size())
        return bad("there are bytes behind the last tensor, or some are missing");
    return {};
}

}  // namespace

std::vector<std::size_t> data_order(const std::vector<TensorView>& tensors) {
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const auto wide_a = size_of(tensors[a].type), wide_b = size_of(tensors[b].type);
        return wide_a != wide_b ? wide_a > wide_b : key_of(tensors[a]) < key_of(tensors[b]);
    });
    return order;
}

Result<std::string> safetensors_head(const std::vector<TensorView>& tensors,
                                     const Metadata& metadata) {
    if (auto good = check_savable(tensors); !good) return good.error();
    if (auto good = check_savable(metadata); !good) return good.error();
    Json header = Json::object();
    header[kMetadata] = metadata;
    if (auto slices = slices_text(tensors); !slices.empty())
        header[kMetadata][kSlicesKey] = std::move(slices);
    std::uint64_t offset = 0;
    for (std::size_t index : data_order(tensors)) {
        const auto& tensor = tensors[index];
        header[key_of(tensor)] = {{"dtype", to_string(tensor.type)},
                                  {"shape", tensor.shape},
                                  {"data_offsets", {offset, offset + tensor.data.size()}}};
        offset += tensor.data.size();
    }
    std::string text = header.dump();
    if (text.size() > kLongestHeader - kPage)
        return usage_error("the names and shapes of " + count_text(tensors.size(), "tensor") +
                           " need " + std::to_string(text.size()) +
                           " bytes in the header of a file, and readers take at most " +
                           std::to_string(kLongestHeader - kPage) +
                           "; give them shorter names, or save fewer tensors");
    // Length and header together fill whole pages.
    const std::size_t whole = (text.size() + 8 + kPage - 1) / kPage * kPage;
    text.resize(whole - 8, ' ');
    return length_prefix(text.size()) + text;
}

const TensorView* Safetensors::find(const std::string& name) const {
    auto it = std::find_if(tensors.begin(), tensors.end(),
                           [&](const TensorView& t) { return t.name == name && !t.is_part(); });
    return it == tensors.end() ? nullptr : &*it;
}

std::uint64_t header_bytes(std::span<const std::byte> file) {
    if (file.size() < 8) return 8;
    const std::uint64_t length = read_length(file);
    return length > file.size() ? file.size() : length + 8;
}

Result<Safetensors> parse_safetensors(std::span<const std::byte> bytes) {
    auto header = parse_header(bytes);
    if (!header) return header.error();
    const auto data = bytes.subspan(8 + read_length(bytes));
    Safetensors file;
    for (const auto& [name, entry] : header->items()) {
        if (name == kMetadata) {
            auto metadata = metadata_from(entry);
            if (!metadata) return metadata.error();
            file.metadata = *metadata;
            continue;
        }
        auto tensor = parse_entry(name, entry, data);
        if (!tensor) return tensor.error();
        file.tensors.push_back(std::move(*tensor));
    }
    // The header lists the tensors by name. The check below needs them in the order of their data.
    std::stable_sort(file.tensors.begin(), file.tensors.end(),
                     [](const TensorView& a, const TensorView& b) {
                         // An empty tensor begins where its neighbour begins and must come before
                         // it.
                         return std::pair(a.data.data(), a.data.size()) <
                                std::pair(b.data.data(), b.data.size());
                     });
    if (auto covered = check_coverage(file, data); !covered) return covered.error();
    if (auto found = find_places(file); !found) return found.error();
    return file;
}

}  // namespace ddprun::trainer
