// A rank's store and Gloo group, with errors as exceptions: what a rank's body in a test wants.
#pragma once

#include <cstdio>
#include <memory>

#include "tests/trainer/ranks.h"
#include "trainer/backend/make_process_group.h"

namespace ddprun::trainer::test {

struct GroupRank {
    explicit GroupRank(const Context& context,
                       std::chrono::milliseconds timeout = std::chrono::seconds(10))
        : store(connect_store(context, std::chrono::seconds(10)).value()),
          group(make_process_group(context, *store, {Backend::gloo, timeout, {}}).value()) {}

    // Waits for another rank's say(), or says so itself; false when nobody does.
    bool hear(const std::string& word) {
        return static_cast<bool>(store->get(word, std::chrono::seconds(20)));
    }
    bool say(const std::string& word) {
        // The counter is answered: after that the word is in the store.
        return store->set(word, "1") && store->add("said", 1);
    }

    std::unique_ptr<Store> store;
    std::unique_ptr<ProcessGroup> group;
};

// An exit code: 0 when the error's sentence holds the text, else the sentence is printed.
inline int expects_error(const Result<void>& done, const std::string& text) {
    if (!done && done.error().sentence().find(text) != std::string::npos) return 0;
    std::fprintf(stderr, "%s\n", done ? "no error" : done.error().sentence().c_str());
    return 90;
}

}  // namespace ddprun::trainer::test
