// Counts looks that have not come back.
#include "diagnosis/standstill/look_thread.h"

#include <utility>

namespace ddprun::agent {

LookThread::LookThread(boost::asio::io_context& loop)
    : loop_(loop), thread_(std::make_unique<FileThread>(loop)) {}

LookThread::~LookThread() { thread_->let_go(); }

void LookThread::look(Time now, std::function<void()> work, std::function<void()> done) {
    busy_since_ = now;
    ++*under_way_;
    thread_->post(
        [work = std::move(work), under_way = under_way_] {
            work();
            --*under_way;
        },
        [this, done = std::move(done)] {
            busy_since_.reset();
            done();
        });
}

void LookThread::give_up() {
    if (!is_busy() || *under_way_ > kGivenUp) return;
    thread_->let_go();
    thread_ = std::make_unique<FileThread>(loop_);
    busy_since_.reset();
}

}  // namespace ddprun::agent
