// Which NCCL is good enough, and how an old one is named.
#include "trainer/nccl/nccl_library.h"

namespace ddprun::trainer {
namespace {

// 22803 → "2.28.3". Versions before 2.9 had two digits less: 2804 → "2.8.4".
std::string text_of(int version) {
    const int major = version < 10000 ? version / 1000 : version / 10000;
    const int minor = version < 10000 ? version / 100 % 10 : version / 100 % 100;
    return std::to_string(major) + "." + std::to_string(minor) + "." +
           std::to_string(version % 100);
}

}  // namespace

Result<void> check_nccl(int version, const std::string& path, const std::string& missing) {
    if (version >= nccl::kOldestVersion && missing.empty()) return {};
    const std::string found = path + " is NCCL " + text_of(version);
    const std::string cure =
        "; put the folder of a newer one into LD_LIBRARY_PATH, or load a "
        "newer module of it";
    if (version < nccl::kOldestVersion) {
        return Error(ErrorCode::unavailable, found + ", which is too old: this program needs " +
                                                 text_of(nccl::kOldestVersion) + " or newer" +
                                                 cure);
    }
    return Error(ErrorCode::unavailable, found + ", which lacks " + missing + cure);
}

}  // namespace ddprun::trainer
