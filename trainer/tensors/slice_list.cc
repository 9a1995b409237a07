// Writes, parses and checks lists of slices.
#include "trainer/tensors/slice_list.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/count_text.h"
#include "trainer/tensors/slice_cover.h"

namespace ddprun::trainer {
namespace {

using Json = nlohmann::json;

// A slice and the rank that brings it.
struct Brought {
    const SliceEntry* slice;
    std::size_t rank;
};

std::string described(const SliceEntry& slice) {
    return std::string(to_string(slice.type)) + " " + describe_extents(slice.whole);
}

std::string rank_text(std::size_t rank) { return "rank " + std::to_string(rank); }

Error refuse(const std::string& tensor, const std::string& why) {
    return {ErrorCode::refused, "tensor \"" + tensor + "\": " + why};
}

// Type and shape of the whole, and where the slice lies in it.
Result<void> fits_together(const Brought& first, const Brought& other) {
    const SliceEntry &a = *first.slice, &b = *other.slice;
    if (a.type != b.type || a.whole != b.whole)
        return refuse(a.tensor, rank_text(other.rank) + " has a slice of " + described(b) +
                                    ", and " + rank_text(first.rank) + " one of " + described(a));
    if (!elements_of(b.whole))
        return refuse(b.tensor, rank_text(other.rank) + " has a slice of " + described(b) +
                                    ", and so many elements do not fit into 64 bits; is the shape "
                                    "of the whole right?");
    if (lies_in(b.part, b.whole)) return {};
    return refuse(b.tensor, rank_text(other.rank) + " has the slice " + describe_ranges(b.part) +
                                ", which does not lie in the whole " + describe_extents(b.whole));
}

// Each rectangle once, whichever ranks bring it. A rank that lists one twice has made a mistake.
// `slices` are in the order of the ranks.
std::vector<Brought> without_replicas(const std::vector<Brought>& slices) {
    std::map<std::pair<Extents, Extents>, std::size_t> last_rank;
    std::vector<Brought> distinct;
    for (const auto& slice : slices) {
        const auto [found, first] =
            last_rank.try_emplace({slice.slice->part.offset, slice.slice->part.shape}, slice.rank);
        if (first || found->second == slice.rank) distinct.push_back(slice);
        found->second = slice.rank;
    }
    return distinct;
}

Error missing(const std::vector<Brought>& slices, const Extents& at) {
    const SliceEntry& first = *slices[0].slice;
    std::uint64_t there = 0;
    for (const auto& [slice, rank] : slices) there += elements_of(slice->part.shape).value_or(0);
    return refuse(first.tensor, "no rank brings the element " + describe_extents(at) +
                                    ": all slices together have " + count_text(there, "element") +
                                    ", and the whole (" + described(first) + ") has " +
                                    std::to_string(elements_of(first.whole).value_or(0)) +
                                    "; the slices of all ranks must make up the whole");
}

Error more_than_once(const std::vector<Brought>& slices, const Extents& at) {
    const Rectangle element{at, Extents(at.size(), 1)};
    std::vector<const Brought*> have;
    for (const auto& slice : slices)
        if (common(slice.slice->part, element)) have.push_back(&slice);
    const auto& [one, rank] = *have[0];
    const auto& [other, other_rank] = *have[1];
    return refuse(one->tensor, rank_text(rank) + " has the slice " + describe_ranges(one->part) +
                                   " and " + rank_text(other_rank) + " the slice " +
                                   describe_ranges(other->part) + ", so " +
                                   describe_ranges(*common(one->part, other->part)) +
                                   " would be saved twice; ranks that share elements bring equal "
                                   "slices");
}

// Without replicas.
Result<void> check_cover(const std::vector<Brought>& slices) {
    std::vector<Rectangle> parts;
    for (const auto& slice : slices) parts.push_back(slice.slice->part);
    const Extents& whole = slices[0].slice->whole;
    const auto wrong = cover_of(parts, {Extents(whole.size()), whole}).first;
    if (!wrong) return {};
    return wrong->times ? more_than_once(slices, wrong->at) : missing(slices, wrong->at);
}

SliceEntry entry_in(const Json& row) {
    const auto type = data_type_of(row.at(1).get<std::string>());
    // nlohmann's own, which the caller turns into a value.
    if (!type) throw Json::type_error::create(302, "no type of an element", nullptr);
    return {row.at(0).get<std::string>(), *type, row.at(2).get<Extents>(),
            Rectangle{row.at(3).get<Extents>(), row.at(4).get<Extents>()}};
}

}  // namespace

std::string write_slices(const std::vector<TensorView>& tensors) {
    std::vector<SliceEntry> slices;
    for (const auto& tensor : tensors)
        if (tensor.place && !tensor.is_nothing())
            slices.push_back({tensor.name, tensor.type, tensor.place->whole,
                              Rectangle{tensor.place->offset, tensor.shape}});
    return write_slices(slices);
}

std::string write_slices(const std::vector<SliceEntry>& slices) {
    std::vector<Json> rows;
    for (const auto& slice : slices)
        rows.push_back({slice.tensor, to_string(slice.type), slice.whole, slice.part.offset,
                        slice.part.shape});
    if (rows.empty()) return {};
    std::sort(rows.begin(), rows.end());
    return Json(rows).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::vector<SliceEntry>> parse_slices(const std::string& text) {
    std::vector<SliceEntry> slices;
    if (text.empty()) return slices;
    try {
        for (const auto& row : Json::parse(text)) slices.push_back(entry_in(row));
    } catch (const Json::exception&) {
        return Error(ErrorCode::malformed, "not a list of slices: " + text.substr(0, 80));
    }
    return slices;
}

Result<void> check_slices(const std::vector<std::vector<SliceEntry>>& ranks,
                          const std::set<std::string>& shared) {
    std::map<std::string, std::vector<Brought>> tensors;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        for (const auto& slice : ranks[rank]) tensors[slice.tensor].push_back({&slice, rank});
    for (const auto& [name, slices] : tensors) {
        if (shared.contains(name))
            return refuse(name, rank_text(slices[0].rank) +
                                    " brings a slice of it, and all ranks bring the whole");
        for (const auto& slice : slices)
            if (auto good = fits_together(slices[0], slice); !good) return good;
        if (auto good = check_cover(without_replicas(slices)); !good) return good;
    }
    return {};
}

}  // namespace ddprun::trainer
