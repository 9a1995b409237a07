// A list of the groups of this process.
#include "trainer/group/other_groups.h"

#include <mutex>
#include <utility>
#include <vector>

namespace ddprun::trainer {
namespace {

struct Groups {
    std::mutex mutex;
    std::vector<OtherGroups*> all;
};

// Never destroyed: a group may be a static object of the program, and ends after this.
Groups& groups() {
    static Groups* const only = new Groups;
    return *only;
}

}  // namespace

OtherGroups::OtherGroups(LongCall mine) : mine_(std::move(mine)) {
    std::lock_guard lock(groups().mutex);
    groups().all.push_back(this);
}

OtherGroups::~OtherGroups() {
    std::lock_guard lock(groups().mutex);
    std::erase(groups().all, this);
}

void OtherGroups::tell(FailureStory& story) {
    std::string call;
    {
        std::lock_guard lock(groups().mutex);
        for (OtherGroups* group : groups().all) {
            if (group == this || !call.empty()) continue;
            const auto other = group->mine_();
            if (!other) return;
            call = *other;
        }
    }
    if (call == told_) return;
    story.waits_elsewhere(call);
    told_ = call;
}

}  // namespace ddprun::trainer
