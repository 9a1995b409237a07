// Where a job can be asked, as a file says it.
#include "rendezvous/ledger_format/job_pointer.h"

#include <gtest/gtest.h>

namespace ddprun::rendezvous {
namespace {

TEST(JobPointer, IsReadAsItIsWritten) {
    for (const JobPointer& pointer : {JobPointer{"lab.9.0", "", "n1", 29400},
                                      JobPointer{"a \"b\"\n", "etcds:h:2379", "::1", 1}})
        EXPECT_EQ(*pointer_from_json(to_json(pointer)), pointer);
}

// Anybody may put a file there, and another version may write it.
TEST(JobPointer, RefusesWhatIsNone) {
    const std::string good = to_json(JobPointer{"a", "", "n1", 29400});
    const auto with = [&](const std::string& part, const std::string& other) {
        std::string text = good;
        text.replace(text.find(part), part.size(), other);
        return text;
    };
    for (const std::string& text :
         {std::string(), std::string("[]"), good.substr(0, 20), with("job 1", "job 2"),
          with("29400", "0"), with("29400", "70000"), with("29400", "\"x\""), with("n1", ""),
          with("host", "hist")})
        EXPECT_EQ(pointer_from_json(text).error().code(), ErrorCode::malformed) << text;
}

}  // namespace
}  // namespace ddprun::rendezvous
