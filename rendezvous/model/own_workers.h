// What operators may ask a node about its own workers, and who answers: the node's agent. Nothing
// of it goes through the leader. Plain values and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "proto/ids.h"
#include "rendezvous/model/usage.h"

namespace ddprun::rendezvous {

// A worker of the newest generation that this node has, if that is this one or a newer one.
struct WorkerAsked {
    int rank = 0;
    Generation generation = kNoGeneration;
};

// What a worker has printed.
struct WorkerText {
    struct Piece {
        bool is_err = false;
        std::string text;
        bool operator==(const Piece&) const = default;
    };
    std::vector<Piece> pieces;
    // What came before these pieces, after those before, and was not read in time. The reader goes
    // on at the beginning of a line, where there is one.
    std::int64_t lost_lines = 0, lost_bytes = 0;
    bool ended = false;  // nothing follows: the generation has ended on this node
    bool is_empty() const { return pieces.empty() && lost_bytes == 0 && !ended; }
};

// Somebody who reads along. Thread: the loop's.
class WorkerReader {
  public:
    virtual ~WorkerReader() = default;
    // What has come since the last call: about `most` bytes at most, the first time the last lines.
    virtual WorkerText take(std::size_t most) = 0;
};

struct ReadWorker {
    Generation generation;
    std::unique_ptr<WorkerReader> reader;
};

struct WorkerStacks {
    Generation generation;
    std::int64_t pid = 0;
    std::vector<std::string> lines;
};

// Called on the loop. Possible errors: not_found (no such worker here), unavailable (not yet, or
// not now: ask again).
struct OwnWorkers {
    // `more` is called on the loop when there is text again after take() has given none. It must
    // not touch the reader.
    std::function<Result<ReadWorker>(const WorkerAsked&, std::size_t lines,
                                     std::function<void()> more)>
        read;
    // `done` is called once, on the loop.
    std::function<void(const WorkerAsked&, std::function<void(Result<WorkerStacks>)> done)> look;
    // What this node's ddprun uses now.
    std::function<Usage()> usage = {};
};

}  // namespace ddprun::rendezvous
