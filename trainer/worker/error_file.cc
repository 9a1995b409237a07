#include "trainer/worker/error_file.h"

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

namespace ddprun::trainer {

std::string error_file_text(const Error& error, long when) {
    const nlohmann::ordered_json json{
        {"message",
         {{"message", std::string(to_string(error.code())) + ": " + error.sentence()},
          {"extraInfo", {{"py_callstack", ""}, {"timestamp", std::to_string(when)}}}}}};
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int report_error(const Error& error) {
    const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
    if (path && *path) std::ofstream(path) << error_file_text(error, std::time(nullptr));
    return error.code() == ErrorCode::usage ? 2 : 1;
}

}  // namespace ddprun::trainer
