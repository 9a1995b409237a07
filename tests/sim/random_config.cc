// Jobs drawn from a seed. Each feature has a chance of its own, so that over many seeds features
// and faults meet in many combinations.
#include <algorithm>

#include "tests/sim/world.h"

namespace ddprun::sim {

using std::chrono::seconds;

namespace {

// Slurm starts the job again while its first allocation trains. Some faults hit the new hosts. A
// ledger that does not answer the old leader is a named limit of rule 26.
void requeue(WorldConfig& config, Random& random) {
    if (config.limits.max_nodes == 1) return;  // has no lease
    config.requeued_at = random.span(seconds{1}, seconds{6});
    for (Fault& fault : config.faults)
        if (random.chance(0.3)) fault.host += config.hosts;
    std::erase_if(config.faults, [](const Fault& fault) {
        return fault.kind == Fault::Kind::ledger_stalls ||
               fault.kind == Fault::Kind::ledger_stalls_here;
    });
}

// What is rare in a real job, and may meet everything else: nodes that do not find the ledger, a
// second ddprun on a host, connections that overtake each other, and a rendezvous outside of the
// job that is killed and started again.
void surround(WorldConfig& config, Random& random) {
    if (config.hosts == 1) return;
    if (random.chance(0.15)) config.strays = random.real(0.1, 0.5);
    if (random.chance(0.15)) config.slow_connections = random.real(0.1, 0.5);
    if (random.chance(0.1)) {
        config.again_on = random.between(1, config.hosts - 1);
        config.again_after = random.span(seconds{0}, seconds{4});
    }
    if (config.requeued_at > Duration{}) return;
    if (random.chance(0.1)) {
        config.outside = random.between(1, 2);
        config.outside_apart = random.span(seconds{0}, seconds{4});
        const int first = config.hosts + (config.again_on >= 0 ? 1 : 0);
        for (Fault& fault : config.faults)
            if (random.chance(0.3)) {
                fault.host = first + random.below(config.outside);
                if (fault.kind == Fault::Kind::process_killed)
                    fault.kind = Fault::Kind::process_replaced;
            }
    } else if (random.chance(0.1)) {
        config.blind.push_back(random.between(1, config.hosts - 1));
    }
}

// Drawn from a seed of its own, so that a seed means the same job with operators and without.
void add_operators(WorldConfig& config, Duration horizon) {
    Random random(config.seed + 7'000'000);
    for (const Fault& each : plan_operators(random, config.hosts, horizon))
        config.faults.push_back(each);
    Random wishes(config.seed + 8'000'000);
    for (const Fault& each : plan_wishes(wishes, config.hosts, horizon))
        config.faults.push_back(each);
    Random suspended(config.seed + 10'000'000);
    if (suspended.chance(0.1))
        config.faults.push_back({Fault::Kind::job_suspended,
                                 Time{suspended.span(horizon / 50, horizon)}, 0,
                                 share(config.limits.times.lease, suspended.real(0.3, 4.0))});
}

// Drawn like these. Under Slurm SIGTERM goes to all nodes.
bool leaves(const WorldConfig& config) {
    Random random(config.seed + 9'000'000);
    return random.chance(0.5) && config.limits.min_nodes < config.limits.max_nodes;
}

}  // namespace

WorldConfig random_config(std::uint64_t seed) {
    // Another stream than the World's own, which starts from the same seed.
    Random random(seed + 0x5EED);
    WorldConfig config;
    config.seed = seed;
    // One node alone has no lease, and rules of its own.
    config.hosts = random.chance(0.1) ? 1 : random.between(2, 7);
    // No spares for a job of one node: it has no lease, so nobody would know when to take over.
    const int spares = config.hosts > 3 && random.chance(0.3) ? random.between(1, 2) : 0;
    const int slots = random.between(1, 2);
    for (int i = 0; i < config.hosts; ++i)
        config.slots.push_back(random.chance(0.1) ? random.between(1, 3) : slots);

    rendezvous::Limits& limits = config.limits;
    limits.max_nodes = std::max(1, config.hosts - spares);
    limits.min_nodes = random.chance(0.4) ? limits.max_nodes : random.between(1, limits.max_nodes);
    limits.max_restarts = random.chance(0.2) ? rendezvous::kAutoRestarts : random.between(0, 3);
    limits.crash_loop = random.chance(0.3) ? 0 : 3;
    // All times of the protocol are shares of the lease, so its length does not matter. With 1 s
    // the numbers are easy to read.
    limits.times.lease = seconds{1};
    // Longer than any recovery with a lease of 1 s, and short for jobs whose missing nodes never
    // come.
    limits.times.join_timeout = seconds{random.between(5, 8)};
    limits.times.last_call = random.span(seconds{0}, seconds{1});
    if (random.chance(0.2))
        // The reverse of the order by name, so that the two cannot be confused.
        for (int i = config.hosts - 1; i >= 0; --i) limits.order.push_back("n" + std::to_string(i));
    config.offer_node_ranks = random.chance(0.5);
    // One node comes late: while the others gather, or while they train already.
    if (random.chance(0.15) && config.hosts > 1) {
        config.starts.assign(config.hosts, Duration{});
        config.starts[random.between(1, config.hosts - 1)] = random.span(seconds{0}, seconds{4});
    }
    config.work = random.span(seconds{1}, seconds{5});
    config.progress = random.chance(0.5);
    // Either a good file system or a very bad one.
    config.lost_answers = random.chance(0.3) ? 0.3 : 0.02;

    // Some scripts are simply wrong: one rank always fails, at about the same time.
    if (random.chance(0.15)) {
        const int rank = random.below(config.hosts);
        const Duration life = random.span(seconds{0}, config.work);
        const int code = random.between(1, 99);
        const Duration work = config.work;
        config.script = [=](Generation, int, int each) {
            return each == rank ? Behaviour{life, code, false} : Behaviour{work, 0, false};
        };
    }
    config.stale_look_ups = share(limits.times.lease, random.chance(0.5) ? random.real(0, 1.0) : 0);
    limits.on_join = random.chance(0.8) ? rendezvous::OnJoin::restart : rendezvous::OnJoin::spare;
    limits.join_interval = random.span(seconds{1}, seconds{4});
    // Up to 10 s: twice the longest work, so that a job with a restart meets late faults, too.
    config.faults = plan_faults(random, config.hosts, limits.times.lease, seconds{10});
    limits.blame = random.chance(0.8);
    // Hangs can be found only where workers report progress, each 0.4 s. The timeout is longer than
    // two reports.
    if (config.progress && random.chance(0.5)) {
        limits.hang_timeout = random.span(seconds{1}, seconds{2});
        const int rank = random.below(config.hosts), step = random.between(1, 4);
        // The rank stands still in the first generations only, or in none.
        const int generations = random.between(0, 2);
        const Duration work = config.work;
        if (!config.script)
            config.script = [=](Generation generation, int, int each) {
                const bool stands = each == rank && generation.value < generations;
                return Behaviour{work, 0, false, stands ? step : -1};
            };
    }
    config.in_slurm = random.chance(0.2);
    if (random.chance(0.15)) requeue(config, random);
    surround(config, random);
    add_operators(config, seconds{10});
    config.leaves = leaves(config);
    return config;
}

WorldConfig hard_config(std::uint64_t seed) {
    // Seeds that HoldsItsInvariantsOnManySeeds does not reach.
    WorldConfig config = random_config(seed + 100'000);
    Random random(seed);
    config.hosts = random.between(3, 5);
    config.starts.clear();
    config.slots.clear();
    config.script = nullptr;
    config.limits.max_nodes = config.hosts;
    // Both halves of a split network may go on, so only the lease keeps them from training at once.
    config.limits.min_nodes = random.between(1, 2);
    // Never used up: the job must live long enough for all faults. 8 s of work are longer than the
    // 6 s of faults.
    config.limits.max_restarts = 50;
    config.limits.crash_loop = 0;
    config.limits.order.clear();
    config.work = seconds{8};
    config.faults = plan_faults(random, config.hosts, config.limits.times.lease, seconds{6});
    // Two plans at once.
    for (const Fault& more :
         plan_faults(random, config.hosts, config.limits.times.lease, seconds{6}))
        config.faults.push_back(more);
    config.requeued_at = {};
    if (random.chance(0.25)) requeue(config, random);
    config.outside = 0;
    config.again_on = -1;
    config.blind.clear();
    surround(config, random);
    add_operators(config, seconds{6});
    config.leaves = leaves(config);
    return config;
}

}  // namespace ddprun::sim
