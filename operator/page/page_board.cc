// Makes the texts, each when it is first asked for (page_board.h).
#include "operator/page/page_board.h"

#include <utility>

#include "operator/ddpctl/history_text.h"
#include "operator/ddpctl/status_text.h"
#include "operator/page/metrics_text.h"
#include "operator/page/page_json.h"

namespace ddprun::launcher {
namespace {

PageBoard::Text shared(std::string text) {
    return std::make_shared<const std::string>(std::move(text));
}

PageBoard::Text event(const char* name, const std::string& json) {
    return shared("event: " + std::string(name) + "\ndata: " + json + "\n\n");
}

}  // namespace

void PageBoard::tell_link(PageView::Link link, const std::string& why, Duration now) {
    if (view_.answers()) view_.heard = now;
    if (view_.link == link && view_.why == why) return;
    view_.link = link;
    view_.why = why;
    ++status_;
    status_event_.reset();
}

void PageBoard::tell_status(const control::StatusReply& status, std::optional<double> steps) {
    view_.link = PageView::Link::answers;
    view_.why.clear();
    view_.status = status;
    view_.steps = steps;
    ++status_;
    status_event_.reset();
    status_json_.reset();
}

void PageBoard::tell_ledger(const FoundJob& job, rendezvous::LedgerHistory history) {
    view_.job = job;
    view_.history = std::move(history);
    ++status_;
    ++history_;
    status_event_.reset();
    history_event_.reset();
    history_json_.reset();
}

PageBoard::Text PageBoard::text(PageContent content, Duration now) {
    switch (content) {
        case PageContent::page:
            return shared(page_html(page_status_json(view_, now), page_history_json(view_)));
        case PageContent::events:
            return shared("retry: 2000\n\n");
        case PageContent::metrics:
            return shared(metrics_text(view_, now, version_, MetricsFormat::prometheus));
        case PageContent::openmetrics:
            return shared(metrics_text(view_, now, version_, MetricsFormat::openmetrics));
        case PageContent::status_json:
            if (!status_json_ && view_.status) status_json_ = shared(status_json(*view_.status));
            return status_json_;
        case PageContent::history_json:
            if (!history_json_ && view_.newest())
                history_json_ = shared(history_json(view_.job, view_.history));
            return history_json_;
    }
    return nullptr;
}

PageBoard::Text PageBoard::next_event(Seen& seen, Duration now) {
    if (std::exchange(seen.status, status_) != status_) {
        if (!status_event_) status_event_ = event("status", page_status_json(view_, now));
        return status_event_;
    }
    if (std::exchange(seen.history, history_) != history_) {
        if (!history_event_) history_event_ = event("history", page_history_json(view_));
        return history_event_;
    }
    return nullptr;
}

PageBoard::Text PageBoard::beat(Duration now) const {
    return event("beat", "{\"now\":" + std::to_string(now.count() / 1'000'000) + "}");
}

}  // namespace ddprun::launcher
