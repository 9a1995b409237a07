// Random requests of several connections, to KeyValues and to the naive store: all answers are the
// same. DDPRUN_SEED_FIRST=n DDPRUN_SEEDS=1 repeats the one that failed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <sstream>

#include "tests/rendezvous/store/side_by_side.h"

namespace ddprun::store {
namespace {

using test::SideBySide;

int number_from(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    return text ? std::atoi(text) : otherwise;
}

class Script {
  public:
    explicit Script(int seed) : random_(static_cast<unsigned>(seed)) {}

    Request request() {
        Request request;
        request.operation =
            static_cast<Operation>(pick(static_cast<int>(Operation::watch_key) + 1));
        request.number = pick(6) - 1;
        const bool several =
            request.operation == Operation::check || request.operation == Operation::wait ||
            request.operation == Operation::multi_get || request.operation == Operation::multi_set;
        const int keys = several ? pick(5) : 1;
        for (int i = 0; i < keys; ++i) {
            request.keys.push_back(kKeys[pick(std::size(kKeys))]);
            request.values.push_back(value());
        }
        if (request.operation == Operation::compare_set) request.values.push_back(value());
        return request;
    }
    std::uint64_t connection() { return static_cast<std::uint64_t>(pick(5)) + 1; }
    bool closes() { return pick(20) == 0; }

  private:
    static constexpr const char* kKeys[] = {"/a", "/b", "/c", "init/", "", "/d"};

    int pick(std::size_t count) { return static_cast<int>(random_() % count); }
    std::string value() {
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

void tell(std::ostream& out, std::uint64_t from, const Request& request) {
    out << from << ": " << to_string(request.operation);
    for (std::size_t i = 0; i < request.keys.size(); ++i)
        out << " '" << request.keys[i] << "'='" << request.values[i].substr(0, 30) << "'";
    out << ' ' << request.number << '\n';
}

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
        if (verdict == SideBySide::Verdict::refused || script.closes()) both.closed(from);
    }
    for (std::uint64_t connection = 1; connection <= 5; ++connection) both.closed(connection);
    ASSERT_EQ(both.used_when_emptied(), 0u) << "DDPRUN_SEED_FIRST=" << seed;
}

TEST(StoreModel, AnswersAsTheNaiveStoreDoes) {
    const int first = number_from("DDPRUN_SEED_FIRST", 1);
    const int seeds = number_from("DDPRUN_SEEDS", 2000);
    for (int seed = first; seed < first + seeds && !HasFatalFailure(); ++seed) run(seed);
}

}  // namespace
}  // namespace ddprun::store
