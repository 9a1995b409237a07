// Every call of our client against any store, for tests/e2e/pytorch_store.sh, which starts the
// servers of PyTorch:
//
//   store_calls HOST PORT [WHAT…]   WHAT the server lacks: append, multi, queue, list_keys,
//                                   barrier. These calls must fail with the right error then.
//                                   `cancel` changes nothing: a wait that times out ends the same
//
// Prints each call with its answer. Exits with 1 after the first wrong one.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <set>

#include "store/client/client.h"

namespace {

using namespace ddprun;
using namespace ddprun::store;
using namespace std::chrono_literals;

// The words WHAT.
std::set<std::string> absent;
// An answer as a line of output; of a large value only the size.
template <class T>
std::string text(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
        return value.size() > 100 ? std::to_string(value.size()) + " bytes" : '"' + value + '"';
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        std::string all;
        for (const std::string& one : value) all += text(one) + " ";
        return all;
    } else if constexpr (std::is_same_v<T, std::optional<std::string>>) {
        return value ? text(*value) : "none";
    } else {
        return std::to_string(value);
    }
}

// Prints the call and ends the program if the outcome is not `wanted`.
template <class T>
std::string outcome(const Result<T>& result) {
    if (!result) return to_string(result.error().code());
    if constexpr (std::is_void_v<T>) {
        return "done";
    } else {
        return text(*result);
    }
}

template <class T>
void expect(const std::string& what, const Result<T>& result, const std::string& wanted) {
    const std::string got = outcome(result);
    std::cout << what << ": " << got << std::endl;
    if (got == wanted) return;
    std::cout << "WRONG, wanted " << wanted << std::endl;
    if (!result) std::cout << result.error() << std::endl;
    std::exit(1);
}

// The client refuses the call by itself (an old dialect), or the server closes the connection (a
// new dialect that lacks the operation).
template <class T>
void expect_refusal(const std::string& what, const Result<T>& result) {
    std::cout << what << ": " << outcome(result) << std::endl;
    if (!result && (result.error().code() == ErrorCode::refused ||
                    result.error().code() == ErrorCode::closed)) {
        std::cout << "  " << result.error().sentence() << std::endl;
        return;
    }
    std::cout << "WRONG, the server should not know this" << std::endl;
    std::exit(1);
}

// With 20 s for an answer, far above what it takes.
class Client {
  public:
    Client(const std::string& host, std::uint16_t port)
        : client_(StoreClient::connect(host, port, 20s).value()) {}
    template <class T>
    Result<T> run(TypedTask<T> task, Timeout timeout = 20s) {
        return client_.run(std::move(task), timeout);
    }

  private:
    StoreClient client_;
};

// The calls that every server since 1.13 has.
void plain_calls(Client& client) {
    expect("set", client.run(tasks::set("k", "v")), "done");
    expect("get", client.run(tasks::get("k")), "\"v\"");
    expect("set empty", client.run(tasks::set("empty", "")), "done");
    expect("get empty", client.run(tasks::get("empty")), "\"\"");
    expect("set large", client.run(tasks::set("large", std::string(5 << 20, 'x'))), "done");
    expect("get large", client.run(tasks::get("large")), "5242880 bytes");
    expect("add", client.run(tasks::add("n", 21)), "21");
    expect("add again", client.run(tasks::add("n", -24)), "-3");
    expect("get counter", client.run(tasks::get("n")), "\"-3\"");
    expect("compare_set", client.run(tasks::compare_set("c", "a", "b")), "\"a\"");
    expect("compare_set", client.run(tasks::compare_set("c", "", "b")), "\"b\"");
    expect("compare_set", client.run(tasks::compare_set("c", "a", "c")), "\"b\"");
    expect("check", client.run(tasks::check({"k", "n"})), "1");
    expect("check missing", client.run(tasks::check({"k", "z"})), "0");
    expect("wait", client.run(tasks::wait({"k", "n"})), "done");
    expect("delete_key", client.run(tasks::delete_key("empty")), "1");
    expect("delete_key again", client.run(tasks::delete_key("empty")), "0");
    // The number includes the keys of others, such as PyTorch's count of workers. So only its
    // growth is known.
    const Result<std::int64_t> keys = client.run(tasks::num_keys());
    expect("set one more", client.run(tasks::set("more", "")), "done");
    expect("num_keys", client.run(tasks::num_keys()), std::to_string(keys.value() + 1));
}

// A wait that ends by time leaves the client usable, whether the server can take it back or not.
void waits(Client& client, Client& other) {
    expect("get in vain", client.run(tasks::get("never"), 100ms), "timed_out");
    expect("get then", client.run(tasks::get("k")), "\"v\"");
    expect("wait in vain", client.run(tasks::wait({"k", "never"}), 100ms), "timed_out");
    expect("add then", client.run(tasks::add("n", 1)), "-2");
    expect("the other's set", other.run(tasks::set("never", "now")), "done");
    expect("get at last", client.run(tasks::get("never")), "\"now\"");
}

// The calls since 2.1.
void newer_calls(Client& client) {
    if (absent.count("append")) {
        expect_refusal("append", client.run(tasks::append("log", "a")));
    } else {
        expect("append", client.run(tasks::append("log", "a")), "done");
        expect("append", client.run(tasks::append("log", "bc")), "done");
        expect("get log", client.run(tasks::get("log")), "\"abc\"");
    }
    if (absent.count("multi")) {
        expect_refusal("multi_set", client.run(tasks::multi_set({{"m1", "1"}})));
        expect_refusal("multi_get", client.run(tasks::multi_get({"k"})));
    } else {
        expect("multi_set", client.run(tasks::multi_set({{"m1", "1"}, {"m2", ""}})), "done");
        expect("multi_get", client.run(tasks::multi_get({"m2", "m1"})), "\"\" \"1\" ");
        expect("multi_get none", client.run(tasks::multi_get({})), "");
        expect("multi_get in vain", client.run(tasks::multi_get({"m1", "z"}), 100ms), "timed_out");
    }
}

// The calls that came with 2.8 and later. A server without queues closes the connection, so
// queue_len gets a client of its own there.
void newest_calls(Client& client, Client& spoiled) {
    if (absent.count("queue")) {
        expect_refusal("queue_len", spoiled.run(tasks::queue_len("q")));
    } else {
        expect("queue_push", client.run(tasks::queue_push("q", "e1")), "done");
        expect("queue_push", client.run(tasks::queue_push("q", "e2")), "done");
        expect("queue_len", client.run(tasks::queue_len("q")), "2");
        expect("queue_pop", client.run(tasks::queue_pop("q")), "\"e1\"");
        expect("try_queue_pop", client.run(tasks::try_queue_pop("q")), "\"e2\"");
        expect("try_queue_pop", client.run(tasks::try_queue_pop("q")), "none");
        expect("queue_pop in vain", client.run(tasks::queue_pop("q"), 100ms), "timed_out");
    }
    if (absent.count("list_keys")) {
        expect_refusal("list_keys", client.run(tasks::list_keys()));
    } else {
        const auto keys = client.run(tasks::list_keys()).value();
        const bool there = std::find(keys.begin(), keys.end(), "k") != keys.end();
        expect("list_keys", Result<bool>(there), "1");
    }
    if (absent.count("barrier")) {
        expect_refusal("barrier", client.run(tasks::barrier("b", 2)));
    } else {
        expect("barrier in vain", client.run(tasks::barrier("b", 2), 100ms), "timed_out");
        // The client that gave up stays counted, so it arrives as the second of two.
        expect("barrier", client.run(tasks::barrier("b", 2)), "done");
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return std::cerr << "store_calls HOST PORT [WHAT…]\n", 2;
    absent.insert(argv + 3, argv + argc);
    const auto port = static_cast<std::uint16_t>(std::atoi(argv[2]));
    Client client(argv[1], port), other(argv[1], port), spoiled(argv[1], port);
    plain_calls(client);
    waits(client, other);
    newer_calls(client);
    newest_calls(client, spoiled);
}
