// KeyValues and the naive store get the same requests; says whether their answers differ. Used by
// model_test.cc and by the fuzz target store_machine.
#pragma once

#include "store/server/key_values.h"
#include "tests/store/naive_store.h"

namespace ddprun::store::test {

class SideBySide {
  public:
    // Low enough that a few APPENDs of 6000 bytes reach it.
    static constexpr std::uint64_t kMaxValue = 20'000;

    // `differ` is the failure; `refused`: both refuse, so the connection has to be closed.
    enum class Verdict { served, refused, differ };

    Verdict ask(std::uint64_t from, const Request& request) {
        replies_.clear();
        const Result<> served = real_.handle(ConnectionId(from), Request(request), replies_);
        const std::optional<Answers> expected = naive_.ask(from, request);
        if (served.has_value() != expected.has_value()) return Verdict::differ;
        // A refused request must not have answered anybody.
        if (!served) return replies_.empty() ? Verdict::refused : Verdict::differ;
        // Joined by connection: one store may send in two pieces what the other sends in one.
        Answers answers;
        for (const Reply& reply : replies_) answers[reply.to.value] += reply.flat();
        return answers == *expected ? Verdict::served : Verdict::differ;
    }

    void closed(std::uint64_t connection) {
        real_.closed(ConnectionId(connection));
        naive_.closed(connection);
    }

    // Takes everything out again, as a connection that nobody else uses. Returns the memory that
    // KeyValues then counts, which must be 0. All other connections have to be closed before.
    std::uint64_t used_when_emptied() {
        const std::uint64_t last = ~std::uint64_t{0};
        for (const std::string& key : naive_.keys()) {
            (void)real_.handle(ConnectionId(last), {Operation::delete_key, {key}, {}, 0}, replies_);
        }
        for (const auto& [key, elements] : naive_.queues()) {
            for (std::size_t i = 0; i < elements.size(); ++i)
                (void)real_.handle(ConnectionId(last), {Operation::queue_pop, {key}, {}, 0},
                                   replies_);
        }
        replies_.clear();
        return real_.memory().used;
    }

  private:
    KeyValues real_{Limits{.max_value = kMaxValue}};
    NaiveStore naive_{kMaxValue};
    std::vector<Reply> replies_;
};

}  // namespace ddprun::store::test
