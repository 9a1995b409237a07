// Where the secret of the agent link comes from. The leader's is made once, from the first of these
// that there is:
//
//   --secret-file   what stands in the file that all nodes were given
//   MUNGE           a random one, in a credential that only this user can decode, anywhere in the
//                   cluster: the program `munge` is asked once; each node asks its own `unmunge`
//   ledger folder   a random one, in a file there that only this user can read; whoever leads the
//                   job next finds and uses the same
//   none            whoever reaches the port may join; --identity=require refuses that
//
// A node takes the secret from where the leader's Challenge says, if it may: given --secret-file,
// only that; a credential only if this user has made it (anybody can make one for us); a file only
// in the job's ledger folder, and ours. That may be PATH-DIGEST, where PATH is another job's: the
// file's name ends with what stands behind PATH, so that the Challenge says which folder it is and
// nodes with other commands find it too. And a leader that asks for no proof is followed only by a
// node that would have none to ask for itself, so that nobody gets around a proof by not asking for
// it.
//
// Thread: the loop's; programs run as children, files are read on the file thread, none blocks.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/loop/file_thread.h"
#include "rendezvous/identity/handshake_messages.h"
#include "rendezvous/model/identity_mode.h"

namespace ddprun::rendezvous {

struct IdentityConfig {
    IdentityMode mode = IdentityMode::automatic;
    std::string secret{};  // of --secret-file; empty: not given
    std::string folder{};  // where the job's ledger is to lie; empty: not in a folder
    bool outside = false;  // of a rendezvous outside the jobs, whose ledger no node has to read
};

// What --secret-file names. Errors: usage, with what to do: not there, others can read it, less
// than 16 or more than 1024 bytes. A line's end after it does not count. Blocks; before the loop
// runs.
Result<std::string> read_secret_file(const std::string& path);

// The leader's secret and what its Challenge says of it.
struct OwnSecret {
    std::string secret;      // empty: no proof is asked for
    std::string credential;  // of MUNGE, or
    std::string file;        // in the ledger's folder, or neither: --secret-file
};

class Secrets {
  public:
    // Callbacks come on the loop, never from within a call, and none after destruction.
    template <class T>
    using Done = std::function<void(Result<T>)>;

    // `loop` and `files` must outlive it.
    Secrets(boost::asio::io_context& loop, FileThread& files, IdentityConfig config);
    ~Secrets();
    Secrets(const Secrets&) = delete;
    Secrets& operator=(const Secrets&) = delete;

    // Begins to ask munge, if it will be needed, and says what there is: "--secret-file", "MUNGE",
    // "a file in the ledger's folder"; or nothing, when identity is off (--identity=none). Errors:
    // unavailable, with what is missing and the options that mend it.
    void look(Done<std::string> done);

    // As the leader, once its ledger has been opened: the folder in which it lies, that of the
    // config or one whose name begins so; empty: none.
    void ledger_lies_in(const std::string& folder);

    // As the leader; after ledger_lies_in(). Asked again, the answer is the same. Errors:
    // unavailable, with --identity=require, or when the file cannot be written or is not ours.
    void own(Done<OwnSecret> done);

    // As a node. Errors: refused, with a sentence about the leader or this node.
    void of_leader(const Challenge& challenge, Done<std::string> done);

    // As a node whose leader asks for no proof: whether to follow it. Errors: refused.
    void of_open_leader(Done<void> done);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace ddprun::rendezvous
