#!/usr/bin/env bash
# The metrics and examples/monitoring, as Prometheus's own programs see them: promtool checks metrics, configuration and
# rules, a Prometheus scrapes a page with its token, and the dashboard asks for nothing that is not there.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_program promtool
need_program prometheus
need_program python3
recorded=$bin/../tests/page_recorded
[[ -x $recorded ]] || fail "page_recorded is not built"
monitoring=$root/examples/monitoring
data=$root/tests/data/page
cd "$work"
cp "$monitoring"/*.yml "$data/alerts_test.yml" .

say "promtool finds nothing to complain about"
promtool check metrics <"$data/metrics.prom" >metrics.out 2>&1 || fail "metrics"
[[ ! -s metrics.out ]] || fail "metrics"
(umask 077; printf 'a-token-for-the-tests' >token)
promtool check config prometheus.yml >config.out 2>&1 || fail "configuration"
promtool check rules alerts.yml >rules.out 2>&1 || fail "rules"
promtool test rules alerts_test.yml >test.out 2>&1 || fail "an alert is not as it should be"

say "dashboard and alerts name only metrics that there are"
{ cat "$data/metrics.prom"; echo 'ddprun_exit_code{'; } | grep -oE '^ddprun_[a-z_]+' | sort -u >known.out
grep -ohE 'ddprun_[a-z_]+' "$monitoring/dashboard.json" "$monitoring/alerts.yml" "$data/alerts_test.yml" |
    sort -u >named.out
(($(wc -l <named.out) > 15)) || fail "no metrics are named"
unknown=$(comm -13 known.out named.out)
[[ -z $unknown ]] || fail "there is no $unknown"
grep -oE '`ddprun_[a-z_]+' "$root/operator/README.md" | tr -d '`' | sort -u >told.out
other=$(comm -3 known.out told.out)
[[ -z $other ]] || fail "operator/README.md does not name the same metrics: $other"

say "a Prometheus scrapes a page with the token, and answers all that the dashboard asks"
mkfifo commands
"$recorded" 20 <commands >recorded.out 2>recorded.err &
page=$!
exec 7>commands
wait_until 20 has recorded.out '^http' || fail "no page"
echo states >&7
wait_until 20 has recorded.out '^shown states' || fail "no states"
at=$(sed -n 's|^http://\([^/]*\)/.*|\1|p' recorded.out)
mine=$(free_port)
sed -i "s/127.0.0.1:9464/$at/; s/scrape_interval: .*/scrape_interval: 1s/" prometheus.yml
prometheus --config.file=prometheus.yml --storage.tsdb.path="$work/tsdb" --web.listen-address="127.0.0.1:$mine" \
    >prometheus.out 2>&1 </dev/null &
prometheus=$!
clean_up() { kill "$page" "$prometheus" 2>/dev/null; }
cat >ask.py <<'P'
import json, sys, urllib.parse, urllib.request
def ask(query):
    url = f"http://127.0.0.1:{sys.argv[1]}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    return json.load(urllib.request.urlopen(url, timeout=10))["data"]["result"]
if sys.argv[2] == "ready":
    sys.exit(not ask('up{job="ddprun"} == 1'))
assert {one["metric"]["state"]: one["value"][1] for one in ask("ddprun_nodes")}["running"] == "10"
assert ask('ddprun_restarts_total{cause="node"}')[0]["value"][1] == "1"
types = json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/api/v1/metadata", timeout=10))["data"]
assert types["ddprun"][0]["type"] == "info", types["ddprun"]
asked = 0
for panel in json.load(open(sys.argv[2]))["panels"]:
    for target in panel["targets"]:
        ask(target["expr"].replace("$run", ".*"))
        asked += 1
assert asked > 10, asked
P
wait_until 60 python3 ask.py "$mine" ready 2>ready.err || fail "Prometheus does not scrape the page"
python3 ask.py "$mine" "$monitoring/dashboard.json" >ask.out 2>ask.err || fail "not what the page tells"

say "with another token it gets nothing"
echo another >token
not_ready() { ! python3 ask.py "$mine" ready 2>ready.err; }
wait_until 60 not_ready || fail "a wrong token is as good"
