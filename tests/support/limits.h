// The limits of tests/data/limits.txt, for tests that count something. A target that includes this
// defines DDPRUN_TEST_DATA, the path of tests/data. tests/counts/limits.py reads the same file.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace ddprun::test {

// Whether a count is within its limit. The message of a failure is one line with both numbers.
inline testing::AssertionResult within_limit(const std::string& name, double count) {
    std::ifstream file(DDPRUN_TEST_DATA "/limits.txt");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string found;
        double limit = 0;
        if (!(words >> found >> limit) || found != name) continue;
        if (count <= limit) return testing::AssertionSuccess();
        return testing::AssertionFailure() << name << ": " << count << ", more than the limit of "
                                           << limit << " in tests/data/limits.txt";
    }
    return testing::AssertionFailure() << name << " has no limit in tests/data/limits.txt";
}

}  // namespace ddprun::test
