// The names of a node's states (job_status.h).
#include "rendezvous/model/job_status.h"

namespace ddprun::rendezvous {

const char* to_string(NodeStatus::State state) {
    using State = NodeStatus::State;
    switch (state) {
        case State::running:
            return "running";
        case State::starting:
            return "starting";
        case State::stopping:
            return "stopping";
        case State::ready:
            return "ready";
        case State::spare:
            return "spare";
        case State::lost:
            return "lost";
        case State::gone:
            return "gone";
        case State::missing:
            return "missing";
        case State::unusable:
            return "unusable";
        case State::drained:
            return "drained";
        case State::out_of_service:
            return "out of service";
    }
    return "unknown";
}

}  // namespace ddprun::rendezvous
