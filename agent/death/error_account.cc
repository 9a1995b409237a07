// Parses the error file of a worker.
#include "agent/death/error_account.h"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace ddprun::agent {
namespace {

// Bytes. One line for a report, not a stack trace.
constexpr std::size_t kLongest = 1000;

// The last line of a Python traceback has the type and text of the exception.
std::string last_line(const std::string& text) {
    const auto end = text.find_last_not_of("\r\n ");
    if (end == std::string::npos) return {};
    const auto before = text.find_last_of('\n', end);
    const auto begin = before == std::string::npos ? 0 : before + 1;
    return text.substr(begin, std::min(end - begin + 1, kLongest));
}

// Returns the member "message", or null. Deeper nesting than one level is not torchrun's format.
const nlohmann::json* message_of(const nlohmann::json& account) {
    if (!account.is_object()) return nullptr;
    const auto message = account.find("message");
    return message == account.end() ? nullptr : &*message;
}

// What no exit code can be counts as 1, too.
int exit_code_in(const nlohmann::json& message) {
    const auto code = message.find("errorCode");
    if (code == message.end() || !code->is_number_integer()) return 1;
    const auto number = code->get<std::int64_t>();
    return number > 0 && number < 256 ? static_cast<int>(number) : 1;
}

}  // namespace

Result<ErrorAccount> read_error_account(std::string_view text) {
    const auto malformed = [](const char* why) { return Error(ErrorCode::malformed, why); };
    if (text.empty()) return malformed("is empty");
    // The third argument switches exceptions off: the file's content is the worker's and may be
    // anything.
    const auto account = nlohmann::json::parse(text, nullptr, false);
    if (account.is_discarded()) return malformed("is not JSON");
    ErrorAccount found;
    const nlohmann::json* message = message_of(account);
    if (message && message->is_object()) {
        found.exit_code = exit_code_in(*message);
        message = message_of(*message);
    }
    if (!message || !message->is_string()) return malformed("has no text \"message\"");
    found.error = last_line(message->get<std::string>());
    return found;
}

}  // namespace ddprun::agent
