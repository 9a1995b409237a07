// The messages from a node to its leader ↔ bytes.
#include <algorithm>

#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/wire.h"
#include "rendezvous/wire/wire_parts.h"

namespace ddprun::rendezvous {
namespace {

constexpr std::size_t kMaxRunId = 1024;
constexpr std::size_t kMaxVersion = 64;
// Half of kNodeFrameLimit; the rest is for everything else in a Report.
constexpr std::size_t kReportTexts = std::size_t{2} << 20;
constexpr std::size_t kMaxOutcomes = kMaxSlots;

// Writing. Values are our own and need no checks; only texts are cut.
void write(const Hello& hello, link::Hello& out) {
    out.set_run_id(hello.run_id);
    rendezvous::write(hello.node, *out.mutable_node());
    out.set_version(hello.version);
    out.set_requeue(hello.requeue);
    rendezvous::write(hello.limits, *out.mutable_limits());
}

void write(const Beat& from, link::Beat& to) {
    to.set_number(from.number);
    to.set_echo(from.echo);
    to.set_floor(from.floor.value);
    to.set_seen(from.seen.value);
    to.set_running(from.running.value);
    // Duration::max() means "never heard", which is an absent field on the wire.
    if (from.silent != Duration::max()) to.set_silent(from.silent.count());
    to.set_progressed(from.progressed);
    to.set_step(from.step);
    to.set_snapshot(from.snapshot);
    to.set_reports(from.reports);
    to.set_reported(from.reported.count());
    to.set_complete(from.complete);
    to.set_marked(from.marks.generation.value);
    for (const Mark& mark : from.marks.passed) {
        link::Mark& one = *to.add_marks();
        one.set_phase(static_cast<int>(mark.phase));
        one.set_ago(mark.ago.count());
    }
    for (const RankStep& each : from.slowest) {
        link::RankStep& one = *to.add_slowest();
        one.set_rank(each.rank);
        one.set_step(each.step);
    }
}

// Fills the one field of ToLeader that belongs to the message.
struct Writer {
    link::ToLeader& to;

    void operator()(const Hello& hello) const { write(hello, *to.mutable_hello()); }
    void operator()(const Join& join) const {
        rendezvous::write(join.offer, *to.mutable_join()->mutable_offer());
        write(join.beat, *to.mutable_join()->mutable_beat());
        to.mutable_join()->set_ledger_mark(join.ledger_mark);
        to.mutable_join()->set_job(join.job);
        rendezvous::write(join.facts, *to.mutable_join()->mutable_facts());
    }
    void operator()(const Beat& beat) const { write(beat, *to.mutable_beat()); }
    void operator()(const Report& report) const {
        link::Report& out = *to.mutable_report();
        out.set_generation(report.generation.value);
        TextBudget budget(kReportTexts);
        for (const WorkerOutcome& outcome : report.outcomes)
            rendezvous::write(outcome, *out.add_outcomes(), budget);
    }
    void operator()(const StopAsked& asked) const {
        to.mutable_stop_asked()->set_signal(asked.signal);
        to.mutable_stop_asked()->set_reason(clipped(asked.reason));
        to.mutable_stop_asked()->set_cause(static_cast<int>(asked.cause));
        if (asked.left) to.mutable_stop_asked()->set_left(asked.left->count());
        to.mutable_stop_asked()->set_requeue(asked.requeue);
    }
    void operator()(const Leave& leave) const {
        to.mutable_leave()->set_reason(clipped(leave.reason));
    }
    void operator()(const Unusable& unusable) const {
        to.mutable_unusable()->set_reason(clipped(unusable.reason));
    }
    void operator()(const Gone& gone) const {
        rendezvous::write(gone.node, *to.mutable_gone()->mutable_node());
    }
    void operator()(const Inquire& inquire) const {
        write(inquire.as, *to.mutable_inquire()->mutable_as());
    }
};

// Reading. Each field is checked where it is read.
Hello read(const Place& place, const link::Hello& from) {
    Hello hello;
    hello.run_id = place.text("run_id", from.run_id(), 0, kMaxRunId);
    hello.node = rendezvous::read(place.at("node"), from.node());
    hello.version = place.text("version", from.version(), 0, kMaxVersion);
    hello.requeue = place.small("requeue", from.requeue(), 0, kMaxWorld);
    hello.limits = rendezvous::read(place.at("limits"), from.limits());
    return hello;
}

// Each phase of a restart is marked once at most, so there are at most as many marks as phases.
Marks read_marks(const Place& place, const link::Beat& from) {
    Marks marks{read_generation(place, "marked", from.marked()), {}};
    if (place.count("marks", static_cast<std::size_t>(from.marks_size()), kRestartPhases))
        for (int i = 0; i < from.marks_size(); ++i) {
            const Place here = place.at("marks", i);
            marks.passed.push_back(
                {static_cast<RestartPhase>(
                     here.small("phase", from.marks(i).phase(), 0, kRestartPhases - 1)),
                 here.duration("ago", from.marks(i).ago(), Duration{0}, Duration{kMaxNumber})});
        }
    return marks;
}

Beat read(const Place& place, const link::Beat& from) {
    Beat beat;
    // Beats are numbered from 1 on; an echo of 0 means that no Ack has come yet.
    beat.number = place.integer("number", from.number(), 1, kMaxNumber);
    beat.echo = place.integer("echo", from.echo(), 0, kMaxNumber);
    beat.floor = read_generation(place, "floor", from.floor());
    beat.seen = read_entry(place, "seen", from.seen());
    beat.running = read_generation(place, "running", from.running());
    // Absent: this node has never heard another leader.
    beat.silent = from.has_silent()
                      ? place.duration("silent", from.silent(), Duration{0}, Duration{kMaxNumber})
                      : Duration::max();
    beat.progressed = from.progressed();
    beat.step = place.integer("step", from.step(), -1, kMaxNumber);
    beat.snapshot = place.integer("snapshot", from.snapshot(), -1, kMaxNumber);
    beat.reports = place.integer("reports", from.reports(), 0, kMaxNumber);
    beat.reported = place.duration("reported", from.reported(), Duration{0}, Duration{kMaxNumber});
    beat.complete = from.complete();
    beat.marks = read_marks(place, from);
    if (place.count("slowest", from.slowest().size(), kSlowest))
        for (int i = 0; i < from.slowest_size(); ++i) {
            const Place here = place.at("slowest", i);
            beat.slowest.push_back({here.small("rank", from.slowest(i).rank(), 0, kMaxWorld),
                                    here.integer("step", from.slowest(i).step(), -1, kMaxNumber)});
        }
    return beat;
}

Join read(const Place& place, const link::Join& from) {
    return {rendezvous::read(place.at("offer"), from.offer()), read(place.at("beat"), from.beat()),
            from.ledger_mark(), from.job(), rendezvous::read(place.at("facts"), from.facts())};
}

Report read(const Place& place, const link::Report& from) {
    Report report;
    report.generation = read_generation(place, "generation", from.generation());
    if (place.count("outcomes", from.outcomes().size(), kMaxOutcomes))
        for (int i = 0; i < from.outcomes_size(); ++i)
            report.outcomes.push_back(rendezvous::read(place.at("outcomes", i), from.outcomes(i)));
    return report;
}

StopAsked read(const Place& place, const link::StopAsked& from) {
    return {place.small("signal", from.signal(), 0, 64),
            place.text("reason", from.reason(), 0, kMaxText), read_cause(place, from),
            read_left(place, from), from.requeue()};
}

// message_case() has a value for each message, so the compiler finds one that is missing here.
ToLeader read(Fault& fault, const link::ToLeader& from) {
    switch (from.message_case()) {
        case link::ToLeader::kHello:
            return read(Place(fault, "Hello"), from.hello());
        case link::ToLeader::kJoin:
            return read(Place(fault, "Join"), from.join());
        case link::ToLeader::kBeat:
            return read(Place(fault, "Beat"), from.beat());
        case link::ToLeader::kReport:
            return read(Place(fault, "Report"), from.report());
        case link::ToLeader::kStopAsked:
            return read(Place(fault, "StopAsked"), from.stop_asked());
        case link::ToLeader::kLeave:
            return Leave{Place(fault, "Leave").text("reason", from.leave().reason(), 0, kMaxText)};
        case link::ToLeader::kUnusable:
            return Unusable{
                Place(fault, "Unusable").text("reason", from.unusable().reason(), 0, kMaxText)};
        case link::ToLeader::kGone: {
            const Place place(fault, "Gone");
            return Gone{rendezvous::read(place.at("node"), from.gone().node())};
        }
        case link::ToLeader::kProof:
            // The gate reads Proofs. One that comes later is out of place.
            Place(fault, "ToLeader").complain("proof", "comes once, in answer to a Challenge");
            // Any value does, since the fault makes the caller throw it away.
            return Leave{};
        case link::ToLeader::kInquire:
            return Inquire{read(Place(fault, "Inquire").at("as"), from.inquire().as())};
        case link::ToLeader::MESSAGE_NOT_SET:
            break;
    }
    // A field of a newer version, or none at all.
    Place(fault, "ToLeader")
        .complain("message", "unknown; does the other side run a newer version?");
    return Leave{};
}

}  // namespace

std::string encode(const ToLeader& message) {
    link::ToLeader to;
    std::visit(Writer{to}, message);
    return to.SerializeAsString();
}

Result<ToLeader> decode_to_leader(std::string_view bytes) {
    link::ToLeader from;
    // The size is checked first: protobuf takes an int.
    if (bytes.size() > kNodeFrameLimit ||
        !from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        return Error(ErrorCode::malformed, "ToLeader: these " + std::to_string(bytes.size()) +
                                               " bytes are no protobuf message");
    Fault fault;
    ToLeader message = read(fault, from);
    if (fault.first) return *fault.first;
    return message;
}

}  // namespace ddprun::rendezvous
