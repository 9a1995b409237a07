// Fuzz target: an error file with any bytes. What is read from it goes into one line of a report.
#include "agent/death/error_account.h"

#include <cstdint>
#include <cstdlib>

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto account = ddprun::agent::read_error_account(
        std::string_view(reinterpret_cast<const char*>(data), size));
    if (account) {
        require(account->error.size() <= 1000);
        require(account->exit_code > 0 && account->exit_code < 256);
        require(account->error.find('\n') == std::string::npos);
    } else {
        require(account.error().code() == ddprun::ErrorCode::malformed);
        require(!account.error().sentence().empty());
    }
    return 0;
}
