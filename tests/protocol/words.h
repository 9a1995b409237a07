// The words of a line in a script of the protocol: `0.5 a beats floor=0 running=none` is a time,
// some words, and values with names. A word that no code has asked for is a fault of the script.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/builders.h"

namespace ddprun::protocol_test {

using Lines = std::vector<std::string>;

class Words {
  public:
    explicit Words(const std::string& line) {
        std::istringstream in(line);
        for (std::string word; in >> word;)
            if (const auto eq = word.find('='); eq != std::string::npos)
                values_[word.substr(0, eq)] = word.substr(eq + 1);
            else
                plain_.push_back(word);
    }
    std::string word(std::size_t i) const { return i < plain_.size() ? plain_[i] : ""; }
    std::size_t count() const { return plain_.size(); }

    std::optional<std::string> text(const std::string& name) const {
        used_.insert(name);
        const auto found = values_.find(name);
        return found == values_.end() ? std::nullopt : std::optional(found->second);
    }
    // "none" is the number below all others: no generation, no entry.
    std::int64_t number(const std::string& name, std::int64_t otherwise) const {
        const auto value = text(name);
        return !value ? otherwise : *value == "none" ? -1 : std::stoll(*value);
    }
    std::optional<Duration> seconds(const std::string& name) const {
        const auto value = text(name);
        return value ? std::optional(test::sec(std::stod(*value))) : std::nullopt;
    }
    void expect_all_used() const {
        for (const auto& [name, value] : values_)
            if (!used_.count(name)) throw std::invalid_argument("unknown value " + name);
    }

  private:
    std::vector<std::string> plain_;
    std::map<std::string, std::string> values_;
    mutable std::set<std::string> used_;
};

[[noreturn]] inline void unknown(const Words& words) {
    std::string all;
    for (std::size_t i = 0; i < words.count(); ++i) all += words.word(i) + " ";
    throw std::invalid_argument("unknown line: " + all);
}

}  // namespace ddprun::protocol_test
