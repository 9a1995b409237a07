// The snapshot that an operator has asked the workers for while they go on training, and whether
// the job is to stop after it (PROTOCOL.md, rule 27).
//
//     none ──ask──▶ open ──a newer snapshot is reported──▶ none
//                     └──its generation ends──▶ none; open again in the next one if a stop waits
//
// What a program reports first in a generation may be what it has loaded. So a snapshot counts as
// newer than the newest that this leader knows of, also of generations before; and one that is
// reported first and is older than that (a damaged one was passed over) is what it begins with.
//
// Lost with its leader, as everything that no entry records. Pure; owned by the rendezvous machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class SnapshotRequest {
  public:
    // ---- operators
    // The generation of this entry is asked. The request's number is higher than that of every
    // earlier one, of earlier leaders, too: workers and nodes do each once.
    void ask(const std::string& by, EntryNumber entry);
    // The job stops after the next snapshot.
    void stop_after(const std::string& by) { stop_by_ = by; }
    // The job stops now, whatever was asked for before.
    void stops() { open_.reset(), stop_by_.clear(); }

    // What Acks carry to the members; empty: nothing is open.
    const std::optional<SnapshotAsked>& open() const { return open_; }
    const std::string& stop_by() const { return stop_by_; }  // empty: no stop waits

    // ---- generations
    // This leader holds the generation of this entry from now on.
    void generation_is_held(EntryNumber entry) {
        if (!stop_by_.empty()) ask(stop_by_, entry);
    }
    void generation_ended() { open_.reset(); }
    // Another generation is the newest one.
    void generation_began();
    // The newest snapshot that was reported in it; -1: none. Returns whose request it answers.
    std::optional<SnapshotAsked> reported(std::int64_t snapshot);

  private:
    std::optional<SnapshotAsked> open_;
    std::string stop_by_;
    std::int64_t asked_ = 0;     // by this leader
    std::int64_t newest_ = -1;   // reported in this generation
    std::int64_t earlier_ = -1;  // in those before
};

}  // namespace ddprun::rendezvous
