// The row of a terminal on which the cursor is, when several writers share it. Pure.
//
// A terminal shows unfinished text: a prompt, a progress bar (\r). One stream at a time, the owner,
// has the cursor's row, and its bytes pass as they come. Complete lines of the others, and of
// ddprun, are put above: the row is erased, the lines are written, and the row is drawn again. So
// lines stay whole, and a bar stays a bar.
//
// The owner keeps the row until its line is complete. Then the stream that has waited longest gets
// it. A bar never takes the row; a prompt (text without \r) takes it from a bar. Of a bar that
// does not have the row only the last state is kept.
//
// With a prefix, the prefix begins each row, and escape sequences that would leave the row (cursor
// up, erase the screen) are dropped. Without a prefix, bytes pass as they are.
//
// A row that is wider than the terminal is erased with the rows into which it has wrapped. Beyond
// 16 KiB it cannot be drawn again: then it is cut before the lines of the others.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::agent {

class Screen {
  public:
    // The next bytes of a stream. `who` identifies it; `prefix` is the same each time. Returns what
    // to write to the terminal.
    std::string print(const void* who, std::string_view prefix, std::string_view bytes);
    // The stream has ended. An unfinished line gets its \n: with a prefix now,
    // without one before anything else is written.
    std::string finish(const void* who);
    // The user has answered the prompt of this stream, and the terminal has shown it with its \n.
    void typed(const void* who);
    // Whole lines that belong to no stream.
    std::string insert(std::string_view lines);
    // How wide the terminal is; 0: not known.
    void set_columns(std::size_t columns) { columns_ = columns; }

  private:
    static constexpr std::size_t kLongest = std::size_t{16} << 10;

    struct Stream {
        const void* who = nullptr;
        std::string prefix;
        std::string row;        // what the cursor's row shows, with its prefix; empty: nothing
        bool is_cut = false;    // more than kLongest has been shown, `row` does not have all of it
        std::string escape;     // the beginning of an escape sequence
        bool returned = false;  // the row ends with \r: the next text begins it again
        bool is_bar = false;    // the row has been begun again by \r
    };
    Stream& stream(const void* who, std::string_view prefix);
    void forget(const void* who);
    std::string give_row();
    std::string ended(std::string bytes);
    std::string above(std::string_view lines);
    std::string erase(const Stream& shown) const;
    Stream* owner();

    std::vector<Stream> streams_;  // those with unfinished text, in the order in which it came
    const void* owner_ = nullptr;
    std::size_t columns_ = 0;
    bool is_open_ = false;  // a stream without a prefix has ended within a row
};

}  // namespace ddprun::agent
