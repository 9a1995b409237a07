// A worker store on a free loopback port: prints the port, serves until its standard input ends.
#include <iostream>
#include <mutex>
#include <string>

#include "tests/rendezvous/store/loopback.h"

int main(int argc, char** argv) {
    using namespace ddprun::store;
    const bool any = argc > 1 && std::string(argv[1]) == "any";
    const test::Listening at = any ? test::listen_any() : test::listen_v4();
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
