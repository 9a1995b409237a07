// Which NCCL is good enough, how an old one is named, and that our declarations are NCCL's own.
#include <gtest/gtest.h>

#include "trainer/nccl/nccl_library.h"

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime_api.h>)
#include <nccl.h>
#define DDPRUN_HAS_NCCL_HEADER 1
#endif

namespace ddprun::trainer {
namespace {

TEST(NcclVersion, NamesAStaleLibrary) {
    EXPECT_TRUE(check_nccl(nccl::kOldestVersion, "libnccl.so.2", ""));
    EXPECT_TRUE(check_nccl(23007, "libnccl.so.2", ""));
    const auto old = check_nccl(21805, "/opt/old/libnccl.so.2", "ncclGather");
    ASSERT_FALSE(old);
    EXPECT_EQ(
        old.error().sentence(),
        "/opt/old/libnccl.so.2 is NCCL 2.18.5, which is too old: this program needs 2.28.3 or "
        "newer; put the folder of a newer one into LD_LIBRARY_PATH, or load a newer module "
        "of it");
    const auto ancient = check_nccl(2804, "x", "");
    ASSERT_FALSE(ancient);
    EXPECT_NE(ancient.error().sentence().find("NCCL 2.8.4,"), std::string::npos);
    const auto cut = check_nccl(22900, "x", "ncclCommSplit");
    ASSERT_FALSE(cut);
    EXPECT_NE(cut.error().sentence().find("x is NCCL 2.29.0, which lacks ncclCommSplit;"),
              std::string::npos);
}

#ifdef DDPRUN_HAS_NCCL_HEADER
// Each value and place of nccl_api.h, as nccl.h of this machine has it.
TEST(NcclApi, IsThatOfNccl) {
    static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
    static_assert(static_cast<int>(nccl::remote_error) == static_cast<int>(ncclRemoteError));
    static_assert(static_cast<int>(nccl::in_progress) == static_cast<int>(ncclInProgress));
    static_assert(static_cast<int>(nccl::internal_error) == static_cast<int>(ncclInternalError));
    const std::pair<int, int> same[] = {{nccl::uint8, ncclUint8},
                                        {nccl::int32, ncclInt32},
                                        {nccl::int64, ncclInt64},
                                        {nccl::uint64, ncclUint64},
                                        {nccl::float16, ncclFloat16},
                                        {nccl::float32, ncclFloat32},
                                        {nccl::float64, ncclFloat64},
                                        {nccl::bfloat16, ncclBfloat16},
                                        {nccl::sum, ncclSum},
                                        {nccl::prod, ncclProd},
                                        {nccl::max, ncclMax},
                                        {nccl::min, ncclMin},
                                        {nccl::avg, ncclAvg},
                                        {nccl::kNoColor, NCCL_SPLIT_NOCOLOR},
                                        {nccl::kUndefined, NCCL_CONFIG_UNDEF_INT}};
    for (const auto& [ours, theirs] : same) EXPECT_EQ(ours, theirs);
    // A later NCCL may have more at the end.
    static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t));
    static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
    static_assert(offsetof(nccl::Config, net_name) == offsetof(ncclConfig_t, netName));
    static_assert(offsetof(nccl::Config, comm_name) == offsetof(ncclConfig_t, commName));
    static_assert(offsetof(nccl::Config, nvlink_centric_sched) ==
                  offsetof(ncclConfig_t, nvlinkCentricSched));
    const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
    const nccl::Config ours;
    EXPECT_EQ(ours.magic, theirs.magic);
    EXPECT_EQ(ours.blocking, theirs.blocking);
    EXPECT_LE(ours.version, theirs.version);
}
#endif

}  // namespace
}  // namespace ddprun::trainer
