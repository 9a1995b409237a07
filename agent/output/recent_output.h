// The newest text of one worker, both streams in the order in which it came, and who reads it:
// operators, with `ddpctl logs`. Pure.
//
// The text is kept once, however many read it; a reader has only his place in it. So a reader who
// stops costs nothing more, and nobody waits for him: what he has not read in time is gone, and he
// is told how much that was. While somebody reads along, more is kept.
//
// Thread: the loop's. A reader keeps the text alive; the worker may be gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/model/own_workers.h"

namespace ddprun::agent {

using OutputPiece = rendezvous::WorkerText::Piece;

class OutputReader;

class RecentOutput {
  public:
    static constexpr std::size_t kKept = std::size_t{64} << 10;        // bytes
    static constexpr std::size_t kReadAlong = std::size_t{512} << 10;  // while there are readers
    // How often the kept text may change between the streams. Before that text the oldest goes.
    static constexpr std::size_t kChanges = 4096;

    void take(bool is_err, std::string_view bytes);
    // Nothing follows: the generation has ended.
    void end();
    bool has_ended() const { return has_ended_; }

    // The last so many lines among the newest kKept bytes, with their ends, and what there is of
    // an unfinished one, which counts. A line whose beginning is not kept is left out if another
    // one follows on its stream.
    std::vector<OutputPiece> last_lines(std::size_t count) const;

  private:
    friend class OutputReader;
    // A place in all that was ever taken.
    using Place = std::uint64_t;
    struct Segment {
        Place end = 0;
        bool is_err = false;
    };
    struct ReadPlace {
        Place at = 0;
        std::uint64_t lines = 0;  // before it
    };
    struct Lost {
        std::uint64_t bytes = 0, lines = 0;
    };

    void come(OutputReader* reader);
    void go(OutputReader* reader);
    void wake_readers();
    std::size_t limit() const { return readers_.empty() ? kKept : kReadAlong; }
    std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
    void set_room(std::size_t bytes);
    void make_room(std::size_t bytes);
    void forget_until(Place place);
    void skip(bool is_err, std::string_view bytes);
    void add(bool is_err);
    void put(Place at, std::string_view bytes);
    std::string text(Place from, Place to) const;
    std::uint64_t lines_between(Place from, Place to) const;
    std::vector<OutputPiece> pieces(Place from, Place to) const;
    Lost catch_up(ReadPlace& place) const;

    std::string ring_;  // the byte at place p is ring_[p % ring_.size()]
    Place begin_ = 0, end_ = 0;
    std::deque<Segment> segments_;      // of what is kept
    bool in_line_[2] = {false, false};  // what was forgotten of each stream ends within a line
    std::uint64_t lines_gone_ = 0;      // line ends before begin_; counted for readers only
    std::vector<OutputReader*> readers_;
    bool has_ended_ = false;
};

// One who reads along. He begins with the last lines.
class OutputReader final : public rendezvous::WorkerReader {
  public:
    // `more` is called when there is text again after take() has given none. It must not touch
    // reader or worker.
    OutputReader(std::shared_ptr<RecentOutput> output, std::size_t lines,
                 std::function<void()> more);
    ~OutputReader() override;
    OutputReader(const OutputReader&) = delete;
    OutputReader& operator=(const OutputReader&) = delete;

    rendezvous::WorkerText take(std::size_t most) override;

  private:
    friend class RecentOutput;
    const std::shared_ptr<RecentOutput> output_;
    const std::function<void()> more_;
    std::vector<OutputPiece> first_;
    RecentOutput::ReadPlace place_;
    bool waits_ = false;  // take() has given nothing
};

}  // namespace ddprun::agent
