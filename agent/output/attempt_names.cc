// Builds the names of the workers' folders and files.
#include "agent/output/attempt_names.h"

namespace ddprun::agent {

std::string run_folder(std::string run_id, const std::string& eight_characters) {
    // The only two bytes that a Linux file name cannot contain.
    for (char& c : run_id)
        if (c == '/' || c == '\0') c = '_';
    return run_id + "_" + eight_characters;
}

std::string attempt_folder(const std::string& run_folder, Generation generation) {
    return run_folder + "/attempt_" + std::to_string(generation.value);
}

std::string worker_folder(const std::string& attempt_folder, int local_rank) {
    return attempt_folder + "/" + std::to_string(local_rank);
}

std::string filtered_file(const std::string& attempt_folder, int stream) {
    return attempt_folder + "/filtered_" + kStreamFiles[stream];
}

}  // namespace ddprun::agent
