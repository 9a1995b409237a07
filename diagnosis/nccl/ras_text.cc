// Reads RAS's text for people, line by line. Lines that it does not know are left out: the text
// differs from release to release.
//
//     #0-0 (27a079b828ff1a75) MISMATCH
//       Communicator ranks have different AllReduce operation counts
//       31 ranks have launched up to operation 641
//       Rank 12 has launched up to operation 640 -- GPU 4 managed by process 4711 on node 10.0.0.2
#include "diagnosis/nccl/ras_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

namespace ddprun::agent {
namespace {

using Wrong = RasFault::Kind;

constexpr std::size_t kLongestWord = 64;

// Takes `word` away if the line begins with it.
bool take(std::string_view& line, std::string_view word) {
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    return true;
}

template <class Number>
bool take_number(std::string_view& line, Number& number) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc() || number < Number{}) return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    return true;
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    while (true) {
        const std::size_t begin = line.find_first_not_of(' ');
        if (begin == std::string_view::npos) return words;
        line.remove_prefix(begin);
        words.push_back(line.substr(0, line.find(' ')));
        line.remove_prefix(words.back().size());
    }
}

// A row of a table: nothing but numbers.
std::vector<int> numbers_of(std::string_view line) {
    std::vector<int> numbers;
    for (std::string_view word : words_of(line)) {
        int number = 0;
        if (!take_number(word, number) || !word.empty()) return {};
        numbers.push_back(number);
    }
    return numbers;
}

// "process 4711 on node 10.0.0.2" anywhere in the line, also "Process 4711 on node …".
void find_process(std::string_view line, RasRank& rank) {
    constexpr std::string_view kProcess = "rocess ";
    for (std::size_t at = line.find(kProcess); at != std::string_view::npos;
         at = line.find(kProcess)) {
        line.remove_prefix(at + kProcess.size());
        if (!take_number(line, rank.pid)) continue;
        if (take(line, " on node ")) rank.host = plain_ras_word(line.substr(0, line.find(' ')));
        return;
    }
}

class Reader {
  public:
    explicit Reader(RasAnswer& answer) : answer_(answer) {}

    void read(std::string_view line) {
        if (take(line, "NCCL version ")) {
            answer_.version = plain_ras_word(line.substr(0, line.find(' ')));
        } else if (line == "Job summary" || line.starts_with("Communicators...")) {
            in_summary_ = line == "Job summary";
        } else if (line == "Errors" || line == "Warnings") {
            is_whole_ |= line == "Warnings";
            leave();
        } else if (line == "INCOMPLETE" || line == "DEAD") {
            leave();
            lost_ = line == "DEAD" ? Wrong::dead : Wrong::silent;
            of_job_ = true;
        } else if (take(line, "#")) {
            enter(line);
        } else if (in_summary_) {
            read_summary(line);
        } else if (of_job_ && take(line, "  ")) {
            read_process(line);
        } else if (communicator_ && take(line, "  ")) {
            read_detail(line);
        } else if (!communicator_) {
            read_row(line);
        }
    }
    bool is_whole() const { return is_whole_; }

  private:
    void leave() {
        communicator_ = nullptr;
        counts_ = nullptr;
        side_ = nullptr;
        of_job_ = false;
    }

    // The last row is that of the totals: five numbers, or three.
    void read_summary(std::string_view line) {
        const std::vector<int> row = numbers_of(line);
        if (row.size() == 5) answer_.processes = row[3];
        if (row.size() == 3) answer_.processes = row[1];
    }

    // "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE"
    void read_row(std::string_view line) {
        const std::vector<std::string_view> words = words_of(line);
        if (words.size() != 8) return;
        std::string_view group = words[0], size = words[4];
        int number = 0;
        Group row;
        if (!take_number(group, number) || !take_number(size, row.size) || !size.empty()) return;
        row.ends = words[6] == "FINALIZE" || words[6] == "ABORT";
        groups_[number] = row;
    }

    // "0-0 (27a079b828ff1a75) MISMATCH"; a communicator may come again with another word.
    void enter(std::string_view line) {
        leave();
        error_.clear();
        int group = 0;
        if (!take_number(line, group)) return;
        const std::size_t open = line.find(" ("), close = line.find(") ");
        if (open == std::string_view::npos || close == std::string_view::npos || close < open)
            return;
        const std::string hash = plain_ras_word(line.substr(open + 2, close - open - 2));
        incomplete_ = line.substr(close + 2) == "INCOMPLETE";
        const auto [at, is_new] = by_hash_.try_emplace(hash, answer_.communicators.size());
        if (is_new)
            answer_.communicators.push_back(
                {hash, groups_[group].size, groups_[group].ends, {}, {}});
        communicator_ = &answer_.communicators[at->second];
        fault_ = incomplete_ ? std::optional(Wrong::silent) : std::nullopt;
    }

    void read_process(std::string_view line) {
        if (!line.starts_with("Process ")) return;
        RasFault fault{lost_, {}};
        find_process(line, fault.who);
        answer_.processes_lost.push_back(std::move(fault));
    }

    void read_detail(std::string_view line) {
        if (take(line, "Communicator ranks have different ")) return begin_counts(line);
        if (take(line, "The missing rank") || take(line, "The unknown rank"))
            return read_list(line);
        RasRank rank;
        int many = 0;
        if (take(line, "Rank ")) {
            if (!take_number(line, rank.rank)) return;
            find_process(line, rank);
            return read_rank(line, rank);
        }
        if (!take_number(line, many) || !take(line, " ranks ")) return;
        if (const auto count = launched(line)) return begin_side(*count, many);
        side_ = nullptr;
        read_state(line);
    }

    // "AllReduce operation counts", before 2.26 "collective operation counts", or "status".
    void begin_counts(std::string_view line) {
        counts_ = nullptr;
        side_ = nullptr;
        fault_.reset();
        const std::size_t end = line.find(" operation counts");
        if (end == std::string_view::npos) return;
        std::string operation = plain_ras_word(line.substr(0, end));
        if (operation == "collective") operation.clear();
        communicator_->counts.push_back({std::move(operation), {}});
        counts_ = &communicator_->counts.back();
    }

    // "has launched up to operation 640", "have not launched any operations"
    static std::optional<std::uint64_t> launched(std::string_view line) {
        std::uint64_t count = 0;
        if (!take(line, "has ") && !take(line, "have ")) return std::nullopt;
        if (line.starts_with("not launched any operations")) return 0;
        if (take(line, "launched up to operation ") && take_number(line, count)) return count;
        return std::nullopt;
    }

    void begin_side(std::uint64_t count, int size) {
        if (!counts_) return;
        counts_->sides.push_back({count, size, {}});
        side_ = &counts_->sides.back();
    }

    // " has launched …", " has status INIT …", " reported System error …", or " -- GPU 4 …".
    void read_rank(std::string_view line, const RasRank& rank) {
        take(line, " ");
        if (line.starts_with("-- ")) {
            if (side_) return side_->ranks.push_back(rank);
            if (fault_) communicator_->faults.push_back({*fault_, rank, error_});
            return;
        }
        if (const auto count = launched(line)) {
            begin_side(*count, 1);
            if (side_) side_->ranks.push_back(rank);
            side_ = nullptr;
            return;
        }
        read_state(line);
        if (fault_) communicator_->faults.push_back({*fault_, rank, error_});
        fault_.reset();
    }

    // What the ranks of the following lines have, or of this one.
    void read_state(std::string_view line) {
        fault_.reset();
        error_.clear();
        if (take(line, "reported ")) {
            fault_ = Wrong::failed;
            error_ = line.substr(0, std::min(line.find(" -- "), kLongestWord));
            std::ranges::replace_if(
                error_, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
        } else if (take(line, "has status ") || take(line, "have status ")) {
            if (line.starts_with("NOCOMM") || line.starts_with("UNKNOWN")) fault_ = Wrong::absent;
            communicator_->ends |= line.starts_with("FINALIZE") || line.starts_with("ABORT");
        }
    }

    // ": 21" or "s: 3,5,7", of NCCL before 2.26
    void read_list(std::string_view line) {
        take(line, "s");
        if (!take(line, ": ")) return;
        RasFault fault{incomplete_ ? Wrong::silent : Wrong::absent, {}};
        while (take_number(line, fault.who.rank)) {
            communicator_->faults.push_back(fault);
            if (!take(line, ",")) return;
        }
    }

    struct Group {
        int size = 0;
        bool ends = false;
    };
    RasAnswer& answer_;
    std::map<int, Group> groups_;  // of the table
    std::map<std::string, std::size_t> by_hash_;
    bool in_summary_ = false, is_whole_ = false, of_job_ = false, incomplete_ = false;
    Wrong lost_ = Wrong::silent;  // in a list of processes
    // Where lines belong to. A pointer ends with the next communicator, counts or side.
    RasCommunicator* communicator_ = nullptr;
    RasCounts* counts_ = nullptr;
    RasSide* side_ = nullptr;
    std::optional<Wrong> fault_;
    std::string error_;
};

}  // namespace

std::string plain_ras_word(std::string_view word) {
    std::string plain(word.substr(0, kLongestWord));
    std::erase_if(plain, [](unsigned char c) {
        return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '.' &&
               c != ':' && c != '_' && c != '-' && c != '+';
    });
    return plain;
}

std::optional<RasAnswer> read_ras_text(std::string_view text) {
    RasAnswer answer;
    Reader reader(answer);
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        reader.read(line);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (!reader.is_whole() || answer.version.empty()) return std::nullopt;
    return answer;
}

}  // namespace ddprun::agent
