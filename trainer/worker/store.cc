// Two stores: one over TCP with PyTorch's store protocol, and one in memory for a single process.
#include "trainer/worker/store.h"

#include <map>

#include "store/client/client.h"

namespace ddprun::trainer {
namespace {

// A store that is alive answers at once, unless the call waits for another rank. So this time is
// long enough for a busy node, and an end to waiting for a dead one.
constexpr auto kAnswer = std::chrono::seconds(30);

// The prefix of a folder. An empty folder is the prefix itself.
std::string below(const std::string& prefix, const std::string& folder) {
    return folder.empty() ? prefix : prefix + folder + "/";
}

// A client of the generation's store that adds a prefix to every key.
class RemoteStore final : public Store {
  public:
    static Result<std::unique_ptr<Store>> connect(const std::string& host, std::uint16_t port,
                                                  std::string prefix,
                                                  std::chrono::milliseconds timeout) {
        auto client = store::StoreClient::connect(host, port, timeout);
        if (!client) return client.error();
        auto made = std::make_unique<RemoteStore>(std::move(*client), std::move(prefix));
        made->host_ = host;
        made->port_ = port;
        return std::unique_ptr<Store>(std::move(made));
    }
    RemoteStore(store::StoreClient client, std::string prefix)
        : client_(std::move(client)), prefix_(std::move(prefix)) {}

    Result<void> set(const std::string& key, const std::string& value) override {
        return client_.set(prefix_ + key, value, kAnswer);
    }
    Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override {
        return client_.get(prefix_ + key, timeout);
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        return client_.add(prefix_ + key, delta, kAnswer);
    }
    Result<void> remove(const std::string& key) override {
        const auto done = client_.delete_key(prefix_ + key, kAnswer);
        return done ? Result<void>() : done.error();
    }
    Result<std::unique_ptr<Store>> another(const std::string& folder) const override {
        return connect(host_, port_, below(prefix_, folder), kAnswer);
    }

  private:
    store::StoreClient client_;
    const std::string prefix_;
    // Where the store is, for another().
    std::string host_;
    std::uint16_t port_ = 0;
};

// For a world of one. Nobody else will ever set a key, so a missing key is an error at once.
class MemoryStore final : public Store {
  public:
    Result<void> set(const std::string& key, const std::string& value) override {
        values_[key] = value;
        return {};
    }
    Result<std::string> get(const std::string& key, std::chrono::milliseconds) override {
        auto it = values_.find(key);
        if (it == values_.end())
            return Error(
                ErrorCode::timed_out,
                "key " + key + " was never set, and a world of one has no other rank to set it");
        return it->second;
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        return counters_[key] += delta;
    }
    Result<void> remove(const std::string& key) override {
        values_.erase(key);
        counters_.erase(key);
        return {};
    }
    // Empty, not a view of this one: in a single process no two threads meet through a store.
    Result<std::unique_ptr<Store>> another(const std::string&) const override {
        return std::unique_ptr<Store>(std::make_unique<MemoryStore>());
    }

  private:
    std::map<std::string, std::string> values_;
    std::map<std::string, std::int64_t> counters_;
};

}  // namespace

Result<std::int64_t> next_of_kind(Store& store, const std::string& kind, Rank rank) {
    return store.add("made/" + kind + "/" + std::to_string(rank.value), 1);
}

Result<std::unique_ptr<Store>> another_of_kind(Store& store, const std::string& kind, Rank rank) {
    const auto number = next_of_kind(store, kind, rank);
    if (!number) return number.error();
    return store.another(kind + "/" + std::to_string(*number));
}

Result<std::unique_ptr<Store>> connect_store(const Context& context,
                                             std::chrono::milliseconds timeout) {
    if (!context.has_store()) return std::unique_ptr<Store>(std::make_unique<MemoryStore>());
    return RemoteStore::connect(context.master_addr, context.master_port,
                                "ddprun_trainer/" + std::to_string(context.generation.value) + "/",
                                timeout);
}

}  // namespace ddprun::trainer
