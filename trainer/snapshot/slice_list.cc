// Writes, parses and checks lists of slices.
#include "trainer/snapshot/slice_list.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/count_text.h"

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
    if (lies_in(b.part, b.whole)) return {};
    return refuse(b.tensor, rank_text(other.rank) + " has the slice " + describe_ranges(b.part) +
                                ", which does not lie in the whole " + describe_extents(b.whole));
}

Result<void> check_overlaps(const std::vector<Brought>& slices) {
    for (std::size_t i = 0; i < slices.size(); ++i)
        for (std::size_t k = 0; k < i; ++k) {
            const auto both = common(slices[i].slice->part, slices[k].slice->part);
            if (!both) continue;
            return refuse(
                slices[i].slice->tensor,
                rank_text(slices[k].rank) + " has the slice " +
                    describe_ranges(slices[k].slice->part) + " and " + rank_text(slices[i].rank) +
                    " the slice " + describe_ranges(slices[i].slice->part) + ", so " +
                    describe_ranges(*both) +
                    " would be saved twice; ranks that share elements bring equal slices");
        }
    return {};
}

// Each rectangle once, whichever ranks bring it. A rank that lists one twice has made a mistake.
std::vector<Brought> without_replicas(const std::vector<Brought>& slices) {
    std::vector<Brought> distinct;
    for (const auto& slice : slices) {
        const bool replica =
            std::any_of(distinct.begin(), distinct.end(), [&](const Brought& other) {
                return other.slice->part == slice.slice->part && other.rank != slice.rank;
            });
        if (!replica) distinct.push_back(slice);
    }
    return distinct;
}

// Without overlaps the elements tell whether something is missing; the search is for the sentence.
Result<void> check_gaps(const std::vector<Brought>& slices) {
    const SliceEntry& first = *slices[0].slice;
    std::uint64_t there = 0;
    std::vector<Rectangle> parts;
    for (const auto& [slice, rank] : slices) {
        there += elements_of(slice->part.shape).value_or(0);
        parts.push_back(slice->part);
    }
    const auto whole = elements_of(first.whole).value_or(0);
    if (there == whole) return {};
    return refuse(first.tensor,
                  "the slices of all ranks have " + std::to_string(there) + " of its " +
                      count_text(whole, "element") + " (" + described(first) +
                      "); the first that no rank has is " +
                      describe_extents(first_gap(parts, first.whole).value_or(Extents())));
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
        const auto distinct = without_replicas(slices);
        if (auto good = check_overlaps(distinct); !good) return good;
        if (auto good = check_gaps(distinct); !good) return good;
    }
    return {};
}

}  // namespace ddprun::trainer
