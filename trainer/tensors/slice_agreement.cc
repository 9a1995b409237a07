// Checks lists when one has changed.
#include "trainer/tensors/slice_agreement.h"

#include "trainer/tensors/slice_choice.h"

namespace ddprun::trainer {

Result<void> SliceAgreement::agree(const std::vector<std::string>& checksums,
                                   const std::set<std::string>& shared, const Fetch& fetch) {
    if (checksums == checksums_ && shared == shared_) return {};
    std::vector<std::vector<SliceEntry>> ranks;
    for (const auto& checksum : checksums) {
        auto text = checksum.empty() ? Result<std::string>(std::string()) : fetch(checksum);
        if (!text) return text.error();
        auto slices = parse_slices(*text);
        if (!slices) return slices.error();
        ranks.push_back(std::move(*slices));
    }
    if (auto good = check_slices(ranks, shared); !good) return good;
    checksums_ = checksums;
    shared_ = shared;
    written_ = choose_writers(ranks);
    return {};
}

}  // namespace ddprun::trainer
