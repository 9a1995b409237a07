// All that can be seen of one job at this moment, as texts that are made once and shared by all who
// look. A subscriber of the events gets the newest of each kind that it has not had, so one who
// reads slowly misses events between and never the newest, and costs one text at most.
// Pure; owned by the server (page_server.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "operator/page/page_door.h"
#include "operator/page/page_view.h"

namespace ddprun::launcher {

class PageBoard {
  public:
    using Text = std::shared_ptr<const std::string>;

    // `version`: of ddpctl.
    explicit PageBoard(std::string version) : version_(std::move(version)) {}

    // What has become known. Times are since 1970.
    void tell_link(PageView::Link link, const std::string& why, Duration now);
    void tell_status(const control::StatusReply& status, std::optional<double> steps);
    void tell_ledger(const FoundJob& job, rendezvous::LedgerHistory history);
    const PageView& view() const { return view_; }

    // Null: nothing is known of it yet. Of the events this is what a subscriber gets first.
    Text text(PageContent content, Duration now);

    // What a subscriber has had.
    struct Seen {
        std::uint64_t status = 0, history = 0;
    };
    // Null: nothing new.
    Text next_event(Seen& seen, Duration now);
    // That the server is there, and what it knows is as old as it says.
    Text beat(Duration now) const;

  private:
    PageView view_;
    std::string version_;
    std::uint64_t status_ = 1, history_ = 1;                          // grow with each change
    Text status_event_, history_event_, status_json_, history_json_;  // null: not made yet
};

// The page with what it shows at first, so that it is complete without a second request.
std::string page_html(const std::string& status_json, const std::string& history_json);
// Its Content-Security-Policy: its own style and script, known by their digests, and nothing else.
std::string page_policy();

}  // namespace ddprun::launcher
