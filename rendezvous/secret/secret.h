// Where the secret of the agent link comes from. The leader takes the first of these that it has:
//
//   --secret-file   the content of the file that all nodes were given
//   MUNGE           a random secret in a credential that only this user can decode, anywhere in the
//                   cluster. The leader calls `munge` once; each node calls its own `unmunge`
//   ledger folder   a random secret in a file there that only this user can read. The job's next
//                   leader finds the same file
//   none            anybody who reaches the port may join. --identity=require refuses to run then;
//                   the launcher asks for that where several nodes run under Slurm
//
// A node takes the secret from where the leader's Challenge says, within these rules:
//
// - A node with --secret-file uses only that.
// - A credential counts only if this user has made it, because anybody can make one for us.
// - A file counts only in the job's ledger folder, and only if it belongs to us. The folder may be
//   PATH-DIGEST, if PATH belongs to another job. The file's name ends with what follows PATH in the
//   folder's name, so the Challenge also tells which folder it is, and nodes with other commands
//   find it, too.
//
// A leader that asks for no proof is followed only by a node that could ask for none itself.
// Otherwise an attacker could avoid the proof by not asking for it.
//
// Thread: the loop's. Programs run as children and files are read on the file thread, so nothing
// blocks.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/loop/file_thread.h"
#include "base/system/secret_text.h"
#include "rendezvous/identity/handshake_messages.h"
#include "rendezvous/model/identity_mode.h"

namespace ddprun::rendezvous {

// What the user has said about identity.
struct IdentityConfig {
    IdentityMode mode = IdentityMode::automatic;
    SecretText secret{};   // content of --secret-file; empty: not given
    std::string folder{};  // where the job's ledger is to be; empty: not in a folder
    bool outside = false;  // for a rendezvous outside the jobs, whose ledger no node needs to read
};

// The content of --secret-file, without a newline at the end. Blocks; call it before the loop runs.
// Possible errors: usage, with what to do: not there, readable by others, fewer than 16 or more
// than 1024 bytes, or so few guesses (secret_strength.h) that a stranger could make them.
Result<SecretText> read_secret_file(const std::string& path);

// The leader's secret, and what its Challenge says about it.
struct OwnSecret {
    SecretText secret;       // empty: no proof is asked for
    std::string credential;  // of MUNGE; or empty
    std::string file;        // in the ledger's folder; or empty. Neither: --secret-file
};

class Secrets {
  public:
    // Callbacks come on the loop, never from within a call, and none after destruction.
    template <class T>
    using Done = std::function<void(Result<T>)>;

    // `loop` and `files` must outlive this object.
    Secrets(boost::asio::io_context& loop, FileThread& files, IdentityConfig config);
    ~Secrets();
    Secrets(const Secrets&) = delete;
    Secrets& operator=(const Secrets&) = delete;

    // Starts to ask munge if it is needed, and tells what there is: "--secret-file", "MUNGE", "a
    // file in the ledger's folder"; an empty text if identity is off (--identity=none). Possible
    // errors: unavailable, with what is missing and which options help.
    void look(Done<std::string> done);

    // Whether there is a secret in any case, whatever munge says.
    bool has_source() const;

    // For the leader, when its ledger is open: the folder in which it lies, which is that of the
    // config or one whose name begins so; empty: none.
    void ledger_lies_in(const std::string& folder);

    // For the leader, after ledger_lies_in(): its secret. Later calls give the same answer.
    // Possible errors: unavailable, with --identity=require, or if the file cannot be written or is
    // not ours.
    void own(Done<OwnSecret> done);

    // For a node: the secret that a leader's Challenge names. Possible errors: refused, with a
    // sentence about the leader or this node.
    void of_leader(const Challenge& challenge, Done<SecretText> done);

    // For a node whose leader asks for no proof: whether to follow it. Possible errors: refused.
    void of_open_leader(Done<void> done);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace ddprun::rendezvous
