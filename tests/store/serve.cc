// A worker store and nothing else, for tests/e2e/pytorch_store.sh and for trying things out:
//
//   store_serve [PORT]   on 127.0.0.1; without PORT on a free port
//   store_serve any      on all addresses and a free port
//
// Prints the port and serves until its standard input ends.
#include <sys/resource.h>

#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>

#include "tests/store/loopback.h"

namespace {

// Up to the hard limit, so that a test may open thousands of connections.
void raise_descriptor_limit() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
    using namespace ddprun::store;
    const bool any = argc > 1 && std::string(argv[1]) == "any";
    const int port = argc > 1 ? std::atoi(argv[argc - 1]) : 0;
    const test::Listening at =
        any ? test::listen_any() : test::listen_v4(static_cast<std::uint16_t>(port));
    raise_descriptor_limit();
    ServerOptions options;
    options.log = [](const std::string& line) { std::cerr << line << '\n'; };
    const auto store = StoreThread::start(at.fd, std::move(options));
    if (!store) {
        std::cerr << store.error() << '\n';
        return 1;
    }
    std::cout << at.port << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
    }
}
