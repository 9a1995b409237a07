// What PyTorch's flight recorders have of this node's workers: asked for while they stand still,
// kept in the folder of their generation, and told to the leader.
//
//   Gloo's    with --flight-recorder: a server in each worker (recorder_sockets.h), which has
//             NCCL's records, too. Its answers are compared.
//   NCCL's    by its pipe (nccl_pipes.h), for workers of Python where files are kept (--log-dir).
//             Its dumps are kept only (flight_dump.h).
//
// Thread: the loop's. What may hang is done on a thread of its own, and the answer does not wait
// for it for longer than five seconds. The folder where files are kept may hang. So the servers,
// which have nothing to do with it, are asked first.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/parts/recorder_options.h"
#include "base/loop/file_thread.h"
#include "proto/ids.h"
#include "rendezvous/model/recorded_calls.h"

namespace ddprun::agent {

class FlightRecorders {
  public:
    using Variables = std::map<std::string, std::string>;
    // A line, once: no server answers.
    using Say = std::function<void(const std::string&)>;
    // `user`: the environment from which the workers get theirs. What is set there stays.
    FlightRecorders(boost::asio::io_context& loop, RecorderOptions options, const Variables& user,
                    Say say);

    // Makes what the workers need in the job's temporary folder, once for each such folder, before
    // the first worker starts. For a file thread. Empty: nothing is needed. `keeps`: there are
    // files that stay (--log-dir).
    std::function<void(const std::string& temporary)> furnish(bool keeps) const;
    // A generation begins. Its workers get what they need in `environment`, and nothing that those
    // of the generation before got. `temporary`: the furnished folder; `kept`: where dumps are
    // kept. Either may be empty.
    void begin(const std::string& temporary, const std::string& kept, Variables& environment);

    // `done` gets what all these workers (ranks) have recorded; at once if nothing is recorded, or
    // the question before is not finished.
    using Done = std::function<void(std::vector<rendezvous::RecordedCalls>)>;
    void ask(Generation generation, const std::vector<int>& ranks, Done done);
    void close();

  private:
    struct Places {
        std::string folder;        // of sockets and pipes; empty: none
        std::string kept;          // empty: nothing is kept
        std::string pipes, dumps;  // prefixes for NCCL, the user's or ours; empty: it is not asked
    };
    struct Round;
    RecorderOptions options_;
    Variables user_;  // of NCCL's recorder
    Say say_;
    Places places_;
    // Where sockets and pipes lie, when the folder is made. Written by the file thread, and read
    // when what was posted there is done.
    std::shared_ptr<std::string> made_ = std::make_shared<std::string>();
    FileThread asking_;
    bool asks_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
