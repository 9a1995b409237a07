// The rows of the options about nodes and about their meeting.
#include "launcher/options/option_rows.h"
#include "launcher/options/option_setters.h"
#include "launcher/options/product_names.h"

namespace ddprun::launcher {
namespace {

// The lease must be at least 2 s. A node may stall for half a lease without effect, and half of
// less than 2 s is too short for the ordinary stalls of a busy host.
constexpr int kLeastLeaseSeconds = 2;

MaybeError set_backend(Options& options, const std::string& value) {
    // torchrun also has etcd as rendezvous. Here etcd can hold the ledger, which is most likely
    // what is wanted.
    if (value.starts_with("etcd"))
        return usage_error(
            "etcd can hold the ledger only; leave the option out, and give "
            "--ledger=etcd:HOST:PORT");
    if (value != "static" && value != "c10d" && value != "ddprun")
        return usage_error("unknown rendezvous; leave the option out, or give c10d or static");
    options.rdzv_backend = value;
    return std::nullopt;
}

MaybeError set_master_addr(Options& options, const std::string& value) {
    // No port follows, so an IPv6 address needs no brackets.
    const bool bare = value.find(':') != value.rfind(':') &&
                      value.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
    auto address = read_host_port(bare ? "[" + value + "]" : value);
    if (!address) return address.error();
    // torchrun's --master-addr is a host without a port.
    if (address->port)
        return usage_error("this option takes no port; give the port as --master-port");
    options.master_addr = address->host;
    return std::nullopt;
}

constexpr OptionRow kNodes[] = {
    {.name = "nnodes",
     .placeholder = "N|MIN:MAX",
     .torchrun = true,
     .brief = "nodes of the job; default: those of the Slurm step",
     .default_text = "1; under srun the nodes of the step",
     .help = "How many nodes take part. With a range, the job continues while at least MIN nodes "
             "are left",
     .differs = "1, which makes each node of a step a job of its own",
     .set = into<&Options::nnodes, read_node_range>},
    {.name = "nproc-per-node",
     .placeholder = "N|auto|gpu|cpu",
     .torchrun = true,
     .brief = "workers on each node; default: one for each GPU",
     .choices = "auto gpu cpu",
     .default_text = "one for each GPU, else 1",
     .help = "Workers on each node. auto: one for each GPU; without GPUs one for each CPU",
     .differs = "1, which leaves all other GPUs idle",
     .set = into<&Options::nproc_per_node, read_workers_per_node>},
    {.name = "node-rank",
     .placeholder = "N",
     .torchrun = true,
     .brief = "number of this node; not needed under srun",
     .help = "Rank of this node. The node with rank 0 leads. Not needed under srun, where "
             "SLURM_NODEID decides",
     .differs = "0, which c10d ignores: names decide there",
     .set = number<&Options::node_rank, 0, 1'000'000>},
    {.name = "standalone",
     .kind = OptionKind::flag,
     .torchrun = true,
     .brief = "a job of this machine only, without Slurm",
     .help = "Run a job of this node only; no endpoint is needed",
     .set = on<&Options::standalone>},
};

constexpr OptionRow kMeeting[] = {
    {.name = "rdzv-backend",
     .placeholder = "NAME",
     .torchrun = true,
     .choices = "ddprun static c10d",
     .default_text = "ddprun",
     .help = "The rendezvous is always ddprun's own; torchrun's static and c10d are accepted",
     .differs = "static, which does not notice the loss of a node",
     .set = set_backend},
    {.name = "rdzv-endpoint",
     .placeholder = "HOST[:PORT]",
     .torchrun = true,
     .brief = "where the nodes meet; not needed under srun",
     .may_be_empty = true,
     .default_text = "under srun the step's first node and --ports; elsewhere port 29400",
     .help = "Where the nodes meet: the node that has this address leads",
     .differs = "none, although Slurm knows it",
     .set = into<&Options::rdzv_endpoint, read_host_port>},
    {.name = "rdzv-id",
     .placeholder = "ID",
     .torchrun = true,
     .may_be_empty = true,
     .default_text = "none; under srun cluster, job and step",
     .help = "Name of the job, the same on all nodes",
     .differs = "none, which all jobs share",
     .set = text<&Options::rdzv_id>},
    {.name = "rdzv-conf",
     .placeholder = "KEY=VALUE,...",
     .torchrun = true,
     .may_be_empty = true,
     .help = "torchrun's keys. These have an effect: join_timeout; last_call_timeout; "
             "keep_alive_interval times keep_alive_max_attempt, which is the lease; is_host (0 on "
             "all nodes: a ddprun-rendezvous at the endpoint leads); timeout, with static only",
     .set = into<&Options::rdzv_conf, read_rdzv_conf>},
    {.name = "master-addr",
     .placeholder = "HOST",
     .torchrun = true,
     .default_text = "127.0.0.1",
     .help = "Host where the nodes meet, without --rdzv-endpoint",
     .set = set_master_addr},
    {.name = "master-port",
     .placeholder = "PORT",
     .torchrun = true,
     .default_text = "29500",
     .help = "Port for --master-addr",
     .set = number<&Options::master_port, 0, 65535>},
    {.name = "local-addr",
     .placeholder = "ADDRESS",
     .torchrun = true,
     .may_be_empty = true,
     .default_text = "the address from which this node reaches the leader",
     .help = "Address at which the other nodes reach this node",
     .differs = "the full host name, which other nodes may not be able to look up",
     .set = text<&Options::local_addr>},
    {.name = "interface",
     .placeholder = "NAME",
     .help = "Use the address of this network interface as --local-addr, e.g. ib0; all nodes must "
             "have this interface",
     .set = text<&Options::interface>},
    {.name = "ports",
     .placeholder = "FROM-TO",
     .default_text = "under srun SLURM_STEP_RESV_PORTS, else computed from job and step",
     .help = "Ports to try for the rendezvous, in this order",
     .set = into<&Options::ports, read_port_range>},
    {.name = "ledger",
     .placeholder = "memory|directory:PATH|etcd:HOST:PORT,...|etcds:HOST:PORT,...",
     .products = kEtcd,
     .product_value = "etcd",
     .default_text = "under srun .ddprun in the working directory (several nodes, or a batch job), "
                     "else memory",
     .help = "Where generations are recorded. With a folder that all nodes share, or with etcd 3, "
             "the loss of the leader's node does not end the job. etcds: over TLS",
     .set = into<&Options::ledger, rendezvous::read_ledger_place>},
    {.name = "etcd-user-file",
     .placeholder = "PATH",
     .products = kEtcd,
     .default_text = "no user",
     .help = "For a ledger in etcd with users: a file that only you can read, with NAME:PASSWORD",
     .set = text<&Options::etcd_user_file>},
    {.name = "etcd-cacert",
     .placeholder = "PATH",
     .products = kEtcd,
     .default_text = "the authorities that this host believes",
     .help = "With --ledger=etcds: the certificates of the authorities that etcd's may be of (PEM)",
     .set = text<&Options::etcd_cacert>},
    {.name = "etcd-cert",
     .placeholder = "PATH",
     .products = kEtcd,
     .default_text = "none",
     .help = "With --ledger=etcds: the certificate that is shown to etcd (PEM)",
     .set = text<&Options::etcd_cert>},
    {.name = "etcd-key",
     .placeholder = "PATH",
     .products = kEtcd,
     .default_text = "none",
     .help = "With --etcd-cert: its key (PEM, without a passphrase), a file that only you can read",
     .set = text<&Options::etcd_key>},
    {.name = "secret-file",
     .placeholder = "PATH",
     .default_text = "MUNGE, else a file in the ledger's folder",
     .help =
         "A file that only the user can read, with the same 16 bytes or more on all nodes. Without "
         "it no process can join or stop the job. To make one: head -c 32 /dev/urandom | base64",
     .set = text<&Options::secret_file>},
    {.name = "identity",
     .placeholder = "auto|require|none",
     .choices = "auto require none",
     .closed = true,
     .default_text = "auto",
     .help =
         "auto: nodes prove with a secret that they belong to this job's user; without a secret a "
         "job of several nodes under Slurm does not start, and elsewhere ddprun warns that any "
         "host may join. require: without a secret no job starts. none: no proof is required",
     .set = into<&Options::identity, read_identity>},
    {.name = "lease",
     .placeholder = "SECONDS",
     .default_text = "10",
     .help =
         "A generation trains only while all its nodes hear each other within this time; one node "
         "may stall for half this time without effect",
     .set = seconds<&Options::lease, kLeastLeaseSeconds>},
    {.name = "join-timeout",
     .placeholder = "SECONDS",
     .default_text = "600",
     .help = "How long to wait for MIN nodes",
     .set = seconds<&Options::join_timeout, 1>},
    {.name = "last-call",
     .placeholder = "SECONDS",
     .default_text = "30",
     .help = "How long to wait for more than MIN nodes at the first start",
     .set = seconds<&Options::last_call, 0>},
    {.name = "on-join",
     .placeholder = "restart|wait|spare",
     .choices = "restart wait spare",
     .closed = true,
     .default_text = "restart",
     .help = "Effect of a node that joins while fewer than MAX run. restart: the world grows after "
             "the next snapshot. wait: the node gets a place in the next generation, whenever that "
             "begins. spare: the node waits to replace a lost one",
     .set = into<&Options::on_join, read_on_join>},
    {.name = "join-interval",
     .placeholder = "SECONDS",
     .default_text = "600",
     .help = "With --on-join=restart: how long such a node waits for a snapshot at most",
     .set = seconds<&Options::join_interval, 0>},
};

}  // namespace

std::span<const OptionRow> node_rows() { return kNodes; }
std::span<const OptionRow> meeting_rows() { return kMeeting; }

}  // namespace ddprun::launcher
