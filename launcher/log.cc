#include "launcher/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace ddprun::launcher {

struct Log::Impl {
    spdlog::logger logger{"ddprun", std::make_shared<spdlog::sinks::stderr_sink_st>()};
};

namespace {

spdlog::level::level_enum level_of(rendezvous::Note::Level level) {
    using Level = rendezvous::Note::Level;
    switch (level) {
        case Level::debug:
            return spdlog::level::debug;
        case Level::info:
            return spdlog::level::info;
        case Level::warn:
            return spdlog::level::warn;
        case Level::error:
            return spdlog::level::err;
    }
    return spdlog::level::err;
}

}  // namespace

Log::Log(std::string name, rendezvous::Note::Level least) : impl_(std::make_unique<Impl>()) {
    impl_->logger.set_level(level_of(least));
    impl_->logger.set_pattern(name + ": %v");
}

Log::~Log() = default;

void Log::operator()(const rendezvous::Note& note) {
    impl_->logger.log(level_of(note.level), spdlog::string_view_t(note.sentence));
}

void Log::raw(const std::string& text) {
    impl_->logger.log(spdlog::level::critical, spdlog::string_view_t(text));
}

}  // namespace ddprun::launcher
