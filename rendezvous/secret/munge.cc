// Runs munge and unmunge, and reads what they print.
#include "rendezvous/secret/munge.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "base/loop/child_program.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

namespace {

// munged answers in milliseconds. A program that takes longer waits for a munged that hangs.
constexpr Duration kLimit = std::chrono::seconds{5};

// MUNGE's status codes (munge.h of its library). The programs exit with them.
enum Status {
    ok = 0,
    socket = 6,
    invalid = 14,
    expired = 15,
    rewound = 16,
    replayed = 17,
    unauthorized = 18
};

std::string meaning(int code) {
    switch (code) {
        case socket:
            return "munged does not run on this host";
        case invalid:
            return "it was made with another key than this host's munged has";
        case unauthorized:
            return "it is for another user";
        default:
            return "unmunge exited with " + std::to_string(code);
    }
}

// In a container with a user namespace our own id is another one than munged sees.
uid_t our_uid() {
    std::ifstream file("/proc/self/uid_map");
    const std::string map((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return outside_uid(map, ::geteuid());
}

// Functions, because g++ 12 cannot compile initializer lists in coroutines. --ttl=-1: as long as
// munged allows.
std::vector<std::string> munge_words() {
    return {"munge", "--restrict-uid=" + std::to_string(our_uid()), "--ttl=-1"};
}
std::vector<std::string> unmunge_words() { return {"unmunge", "--numeric", "--keys=STATUS,UID"}; }

}  // namespace

uid_t outside_uid(std::string_view uid_map, uid_t uid) {
    std::istringstream lines{std::string(uid_map)};
    // Each line of the map: first id inside, first id outside, how many.
    for (unsigned long long inside = 0, outside = 0, count = 0;
         lines >> inside >> outside >> count;)
        if (uid >= inside && uid - inside < count)
            return static_cast<uid_t>(outside + (uid - inside));
    return uid;
}

Result<std::string> read_unmunged(std::string_view output, int exit_code, uid_t uid) {
    // For these three MUNGE decodes the payload all the same.
    if (exit_code != ok && exit_code != expired && exit_code != rewound && exit_code != replayed)
        return Error(exit_code == socket ? ErrorCode::unavailable : ErrorCode::refused,
                     meaning(exit_code));
    // First the asked-for fields, one a line, then an empty line, then the payload.
    const std::size_t gap = output.find("\n\n");
    if (gap == std::string_view::npos)
        return Error(ErrorCode::refused, "unmunge printed no payload");
    std::istringstream lines{std::string(output.substr(0, gap))};
    for (std::string key, value; lines >> key >> value;)
        if (key == "UID:" && value == std::to_string(uid))
            return std::string(output.substr(gap + 2));
    return Error(ErrorCode::refused,
                 "it was not made by user " + std::to_string(uid) + ", which we are");
}

asio::awaitable<Result<std::string>> munge(SecretText secret) {
    const auto made =
        co_await run_program(munge_words(), std::string(std::string_view(secret)), kLimit);
    if (!made) co_return made.error();
    std::string credential = made->output;
    // munge prints a newline after the credential.
    while (!credential.empty() && credential.back() == '\n') credential.pop_back();
    if (made->code != ok || credential.empty())
        co_return Error(ErrorCode::unavailable,
                        made->code == socket ? "munged does not run on this host"
                                             : "munge exited with " + std::to_string(made->code));
    co_return credential;
}

asio::awaitable<Result<SecretText>> unmunge(std::string credential) {
    auto opened = co_await run_program(unmunge_words(), std::move(credential), kLimit);
    if (!opened) co_return opened.error();
    const SecretText output = SecretText::out_of(std::move(opened->output));
    auto secret = read_unmunged(output, opened->code, our_uid());
    if (!secret) co_return secret.error();
    co_return SecretText::out_of(std::move(*secret));
}

}  // namespace ddprun::rendezvous
