// The JSON of an error file.
#include "trainer/worker/error_file.h"

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/exit_code.h"

namespace ddprun::trainer {

namespace {

// With refused the ranks differ, or the library cannot do what the program wants here.
int exit_code_of(const Error& error) {
    const bool must_change =
        error.code() == ErrorCode::usage || error.code() == ErrorCode::refused;
    return must_change ? kUsageCode : 1;
}

}  // namespace

std::string error_file_text(const Error& error, long when) {
    // The fields are those that PyTorch's record() writes for a Python exception. There is no
    // Python stack here, so that field is empty. errorCode is torchrun's own addition: a process
    // that is killed before it has ended counts with this code.
    const nlohmann::ordered_json json{
        {"message",
         {{"message", std::string(to_string(error.code())) + ": " + error.sentence()},
          {"extraInfo", {{"py_callstack", ""}, {"timestamp", std::to_string(when)}}},
          {"errorCode", exit_code_of(error)}}}};
    // `replace`: a sentence may quote bytes that are not UTF-8. They must not make dump() throw.
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int report_error(const Error& error) {
    const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
    // Without a check of the result: the worker ends with its error in any case.
    if (path && *path) std::ofstream(path) << error_file_text(error, std::time(nullptr));
    return exit_code_of(error);
}

}  // namespace ddprun::trainer
