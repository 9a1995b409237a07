// Hashes the name of a run.
#include "agent/workers/run_key.h"

#include <cstdint>

namespace ddprun::agent {
namespace {

constexpr int kLetters = 26, kDigits = 10;
constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::size_t kHalf = 10;  // 36^10 < 2^64

// FNV-1a, with the final mix of SplitMix64, so that names that differ in one digit differ
// everywhere.
std::uint64_t hash(std::string_view text, std::uint64_t begin) {
    std::uint64_t value = begin;
    for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

}  // namespace

std::string run_key(std::string_view run) {
    std::string key;
    for (const std::uint64_t begin : {0xcbf29ce484222325ULL, 0x9ae16a3b2f90404fULL}) {
        std::uint64_t value = hash(run, begin);
        for (std::size_t i = 0; i < kHalf; ++i) {
            const auto choices =
                static_cast<std::uint64_t>(key.empty() ? kLetters : kLetters + kDigits);
            key += kAlphabet[value % choices];
            value /= choices;
        }
    }
    return key;
}

}  // namespace ddprun::agent
