// The modules that a job imports, as its workers have recorded them, in the order of the requests.
// Pure.
//
// A record (bootstrap/_ddprun_record.py) has a line for each complete module: its number in the
// order of the requests, its name, its file, with tabs between them. The numbers of each process
// begin with 1, and records of several generations lie one behind the other in a file.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent::warm {

struct Import {
    std::string name, file;  // file: empty or a word such as "built-in" where there is none
    bool operator==(const Import&) const = default;
};

class ImportList {
  public:
    // Adds what is new in the record of one process. What does not have the form is skipped: a
    // worker may have written the file itself, or died in the middle of a line. Returns whether
    // something was new.
    bool add(std::string_view record);
    void add(const std::vector<Import>& known);
    const std::vector<Import>& imports() const { return imports_; }

  private:
    std::vector<Import> imports_;
    std::set<std::string, std::less<>> names_;
};

}  // namespace ddprun::agent::warm
