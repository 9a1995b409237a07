// A rank's store and its group over Gloo, with errors as exceptions. Most bodies of run_ranks()
// begin with one.
#pragma once

#include <cstdio>
#include <memory>

#include "tests/trainer/ranks.h"
#include "trainer/backend/make_process_group.h"

namespace ddprun::trainer::test {

// A rank's store, and words by which tests fix the order of events, so that they need no sleep.
struct StoreRank {
    explicit StoreRank(const Context& context)
        : store(connect_store(context, std::chrono::seconds(10)).value()) {}

    // Waits until another rank says the word. False when none does within 20 s.
    bool hear(const std::string& word) {
        return static_cast<bool>(store->get(word, std::chrono::seconds(20)));
    }
    bool say(const std::string& word) {
        // The store does not answer set(), but it answers add(). After the answer the word is in
        // the store, even if this rank is killed in the next moment.
        return store->set(word, "1") && store->add("said", 1);
    }

    std::unique_ptr<Store> store;
};

struct GroupRank : StoreRank {
    // 10 s is the group's time-out for each call. Tests of hangs give a shorter one, tests in which
    // nothing may wait for the time-out a much longer one.
    explicit GroupRank(const Context& context,
                       std::chrono::milliseconds timeout = std::chrono::seconds(10),
                       bool shares_memory = true)
        : StoreRank(context), group(make(context, *store, timeout, shares_memory)) {}

    std::unique_ptr<ProcessGroup> group;

  private:
    static std::unique_ptr<ProcessGroup> make(const Context& context, Store& store,
                                              std::chrono::milliseconds timeout,
                                              bool shares_memory) {
        GroupOptions options;
        options.backend = Backend::gloo;
        options.timeout = timeout;
        options.shares_memory = shares_memory;
        return make_process_group(context, store, options).value();
    }
};

// As an exit code: 0 when the error's sentence contains the text. Otherwise 90, and the sentence is
// printed, since the test itself sees only the number.
inline int expects_error(const Result<void>& done, const std::string& text) {
    if (!done && done.error().sentence().find(text) != std::string::npos) return 0;
    std::fprintf(stderr, "%s\n", done ? "no error" : done.error().sentence().c_str());
    return 90;
}

}  // namespace ddprun::trainer::test
