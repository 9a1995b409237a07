// Random requests of five connections, to KeyValues and to the naive store: every answer must be
// the same. It finds mistakes in the indexes, in sharing and in waits that nobody thought of a test
// for. DDPRUN_SEED_FIRST=n DDPRUN_SEEDS=1 repeats the seed that failed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <sstream>

#include "tests/store/side_by_side.h"

namespace ddprun::store {
namespace {

using test::SideBySide;

int number_from(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    return text ? std::atoi(text) : otherwise;
}

// The requests of one seed. Few keys and few connections, so that they meet often.
class Script {
  public:
    explicit Script(int seed) : random_(static_cast<unsigned>(seed)) {}

    Request request() {
        Request request;
        request.operation =
            static_cast<Operation>(pick(static_cast<int>(Operation::watch_key) + 1));
        // -1 to 4: a delta of ADD, and world sizes of BARRIER that are reached at once, later or
        // never.
        request.number = pick(6) - 1;
        // 0 to 4 keys where the operation takes a list; one key may occur twice.
        const bool several =
            request.operation == Operation::check || request.operation == Operation::wait ||
            request.operation == Operation::multi_get || request.operation == Operation::multi_set;
        const int keys = several ? pick(5) : 1;
        for (int i = 0; i < keys; ++i) {
            request.keys.push_back(kKeys[pick(std::size(kKeys))]);
            request.values.push_back(value());
        }
        // COMPARE_SET has two values: the expected and the desired one.
        if (request.operation == Operation::compare_set) request.values.push_back(value());
        return request;
    }
    std::uint64_t connection() { return static_cast<std::uint64_t>(pick(5)) + 1; }
    // A connection closes once in 20 requests: its wait and its watches must go with it.
    bool closes() { return pick(20) == 0; }

  private:
    static constexpr const char* kKeys[] = {"/a", "/b", "/c", "init/", "", "/d"};

    int pick(std::size_t count) { return static_cast<int>(random_() % count); }
    std::string value() {
        // Counters and texts that are none, the largest counter and one above it, a text with a
        // zero byte, and 6000 bytes: above 4 KiB the store shares a value instead of copying it.
        static const std::string kValues[] = {"",
                                              "1",
                                              "-5",
                                              " 12abc",
                                              "x",
                                              "9223372036854775807",
                                              "9223372036854775808",
                                              std::string("a\0b", 3),
                                              std::string(6000, 'v')};
        return kValues[pick(std::size(kValues))];
    }

    std::mt19937 random_;
};

// A line for each request, printed if the seed fails.
void tell(std::ostream& out, std::uint64_t from, const Request& request) {
    out << from << ": " << to_string(request.operation);
    for (std::size_t i = 0; i < request.keys.size(); ++i)
        out << " '" << request.keys[i] << "'='" << request.values[i].substr(0, 30) << "'";
    out << ' ' << request.number << '\n';
}

// One seed. At the end all connections close and everything is taken out. The memory count must be
// 0, or a long job would run into --store-max-memory without reason.
void run(int seed) {
    Script script(seed);
    SideBySide both;
    std::ostringstream story;
    for (int i = 0; i < 200; ++i) {
        const std::uint64_t from = script.connection();
        const Request request = script.request();
        tell(story, from, request);
        const auto verdict = both.ask(from, request);
        ASSERT_NE(verdict, SideBySide::Verdict::differ)
            << "DDPRUN_SEED_FIRST=" << seed << ", the last of\n"
            << story.str();
        // The server closes a connection after a refused request, so the test does the same.
        if (verdict == SideBySide::Verdict::refused || script.closes()) both.closed(from);
    }
    for (std::uint64_t connection = 1; connection <= 5; ++connection) both.closed(connection);
    ASSERT_EQ(both.used_when_emptied(), 0u) << "DDPRUN_SEED_FIRST=" << seed;
}

// 2000 seeds of 200 requests by default.
TEST(StoreModel, AnswersAsTheNaiveStoreDoes) {
    const int first = number_from("DDPRUN_SEED_FIRST", 1);
    const int seeds = number_from("DDPRUN_SEEDS", 2000);
    for (int seed = first; seed < first + seeds && !HasFatalFailure(); ++seed) run(seed);
}

}  // namespace
}  // namespace ddprun::store
