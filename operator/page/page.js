// Shows what ddpctl tells. All texts are data: they are set as text, never as markup.
"use strict";
(() => {
    const STATES = {
        "running": "its workers run", "starting": "its workers do not run yet",
        "stopping": "workers of an older generation are being stopped", "ready": "waits for the next generation",
        "spare": "has no place in this generation", "lost": "its connection is gone", "gone": "its ddprun has ended",
        "missing": "its ddprun has not called", "unusable": "it can run no worker",
        "drained": "an operator has taken it out", "out of service": "Slurm has taken its host out of service",
        "recorded": "a member of the newest generation; whether it runs is not known, or the job has ended",
    };
    const MANY = 64; // from here on nodes are shapes without words
    const ENTRIES = 8; // of the past, before the fold
    const SILENT_AFTER = 15000; // milliseconds without a beat, which comes every 5 s

    const at = id => document.getElementById(id);
    let status = JSON.parse(at("first-status").textContent);
    let history = JSON.parse(at("first-history").textContent);
    let ahead = status.now - Date.now(); // of ddpctl's clock
    let heard = performance.now(); // when ddpctl was last heard
    let source = null, refused = false, broken = false;
    const now = () => Date.now() + ahead;
    const quiet = () => performance.now() - heard;
    // Whether ddpctl is away, and whether what is shown may no longer be true; since when.
    const away = () => refused || broken || quiet() > SILENT_AFTER;
    const old = () => away() || status.link === "lost";
    const moment = () => away() ? now() - quiet() : status.link === "lost" ? status.heard || status.now : now();

    // ---- words

    function make(name, text, kind) {
        const element = document.createElement(name);
        if (text !== undefined) element.textContent = text;
        if (kind) element.className = kind;
        return element;
    }
    // Changes only what is other, so that a screen reader does not read the same again.
    function put(element, text) { if (element.textContent !== text) element.textContent = text; }
    function span(ms) {
        const s = Math.max(0, Math.floor(ms / 1000));
        if (s < 60) return s + " s";
        if (s < 3600) return Math.floor(s / 60) + " m " + s % 60 + " s";
        if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " m";
        return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
    }
    function clock(ms) {
        const two = number => String(number).padStart(2, "0");
        const day = new Date(ms);
        const date = [day.getFullYear(), two(day.getMonth() + 1), two(day.getDate())].join("-");
        const element = make("time", date + " " +
            [day.getHours(), day.getMinutes(), day.getSeconds()].map(two).join(":"));
        element.dateTime = day.toISOString();
        return element;
    }
    const count = (number, word) => number + " " + word + (number === 1 ? "" : "s");
    const known = value => value !== null && value !== undefined;

    // ---- how it stands

    function headline() {
        if (old() && !status.ended) return ["calm", "?", away() ? "is not known now" : "does not answer"];
        if (status.ended) return status.ended.code === 0 ? ["good", "✓", "has ended well"]
            : ["bad", "✗", "has ended with code " + status.ended.code];
        if (!known(status.told)) return status.link === "asking" ? ["calm", "…", "is being asked"]
            : ["calm", "?", "tells nothing; this is its ledger"];
        if (status.standstill) return ["bad", "‖", "stands still"];
        if (status.stopping) return ["warn", "■", "is being stopped"];
        if (status.waiting_for) return ["warn", "…", "waits"];
        if (status.runs) return ["good", "▶", "runs"];
        return ["warn", "…", known(status.generation) ? "is between two generations" : "has no generation yet"];
    }

    function facts() {
        const rows = [];
        const add = (name, text, kind) => { if (known(text) && text !== "") rows.push([name, text, kind]); };
        if (status.ended) add("End", status.ended.sentence, status.ended.code === 0 ? "good" : "bad");
        add("Waits for", status.waiting_for, "warn");
        add("Standstill", status.standstill, "bad");
        add("Stop", status.stopping, "warn");
        add("Snapshot", status.snapshot_asked, "calm");
        add("Generation", known(status.generation) ? String(status.generation) : "none yet");
        if (status.runs && status.since && !status.ended) add("Runs for", span(moment() - status.since));
        add("Workers", known(status.world_size) ? String(status.world_size) : null);
        if (known(status.min_nodes)) add("Nodes wanted", status.min_nodes === status.max_nodes
            ? String(status.min_nodes) : status.min_nodes + " to " + status.max_nodes);
        if (known(status.restarts)) add("Restarts", status.restarts + " of " + status.max_restarts + " used up");
        if (known(status.step)) add("Step", status.step +
            (known(status.steps_a_second) ? ", " + Number(status.steps_a_second.toPrecision(3)) + " a second" : ""));
        add("Snapshot of step", known(status.snapshot) ? String(status.snapshot) : null);
        add("Led by", status.leader);
        if (status.ends && !status.ended) add("Time left", span(status.ends - now()));
        add("Last end", status.last_end, "calm");
        const list = at("facts");
        rows.forEach(([name, text, kind], i) => {
            const box = list.children[i] || list.appendChild(make("div"));
            if (box.childElementCount === 0) box.append(make("dt"), make("dd"));
            box.className = kind ? "wide" : "";
            put(box.children[0], name);
            put(box.children[1], text);
            box.children[1].className = kind || "";
        });
        while (list.childElementCount > rows.length) list.lastElementChild.remove();
    }

    // ---- nodes

    const ranks = ([, , , first, workers]) => !known(first) ? (workers > 0 ? count(workers, "worker") : "no rank")
        : workers > 1 ? "ranks " + first + "–" + (first + workers - 1) : "rank " + first;
    function node_text(node) {
        const [name, state, why, , , said, step] = node;
        const reason = why || (Object.hasOwn(STATES, state) ? STATES[state] : "");
        return name + ": " + state + (reason ? " (" + reason + ")" : "") + ", " + ranks(node) +
            (known(step) ? ", step " + step : "") + (said ? ", last heard " + span(now() - said) + " ago" : "");
    }
    const state_word = state => Object.hasOwn(STATES, state) ? state.replaceAll(" ", "-") : "unknown";

    let chosen = 0; // which node the arrow keys stand on
    let shown = []; // what each cell shows, as text, to see what has changed
    function nodes() {
        const legend = at("legend");
        const order = Object.keys(STATES);
        const counts = Object.entries(status.counts).sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
        const key = JSON.stringify(counts);
        if (legend.dataset.key !== key) {
            legend.dataset.key = key;
            legend.replaceChildren(...counts.map(([state, number]) => {
                const item = make("li");
                item.dataset.state = state_word(state);
                item.append(make("span", undefined, "shape"), make("span", number + " " + state));
                item.title = STATES[state] || "";
                return item;
            }));
        }
        const box = at("nodes");
        const many = status.nodes.length > MANY;
        if (box.classList.toggle("many", many) !== (box.dataset.many === "1") || shown.length !== status.nodes.length) {
            box.dataset.many = many ? "1" : "0";
            shown = status.nodes.map(() => "");
            chosen = Math.min(chosen, Math.max(0, shown.length - 1));
            const empty = make("div", undefined, "node"); // copies of one cell are made faster
            empty.setAttribute("role", "option");
            empty.setAttribute("aria-selected", "false");
            empty.tabIndex = -1;
            empty.append(make("span", undefined, "shape"));
            if (!many) empty.append(make("b"), make("small"));
            box.replaceChildren(...status.nodes.map(() => empty.cloneNode(true)));
            choose(chosen, false);
        }
        status.nodes.forEach((node, i) => {
            const text = JSON.stringify(node);
            if (shown[i] === text) return;
            shown[i] = text;
            const cell = box.children[i];
            cell.dataset.state = state_word(node[1]);
            cell.setAttribute("aria-label", node_text(node));
            if (many) return;
            cell.children[1].textContent = node[0];
            cell.children[2].textContent = ranks(node) + (node[1] === "running" ? "" : ", " + node[1]);
        });
        if (at("table-of-nodes").open) node_table();
    }
    function node_table() {
        at("node-rows").replaceChildren(...status.nodes.map(node => {
            const row = make("tr");
            const name = make("th", node[0]);
            name.scope = "row";
            row.append(name, make("td", node[1]), make("td", ranks(node)),
                make("td", known(node[6]) ? String(node[6]) : "–"), make("td", node[2] || ""));
            return row;
        }));
    }
    function show_node(cell) {
        const i = Array.prototype.indexOf.call(at("nodes").children, cell);
        if (i >= 0 && status.nodes[i]) put(at("node-text"), node_text(status.nodes[i]));
    }
    function choose(i, focus) {
        const cells = at("nodes").children;
        if (!cells[i]) return;
        cells[chosen].tabIndex = -1;
        cells[chosen].setAttribute("aria-selected", "false");
        chosen = i;
        cells[i].tabIndex = 0;
        cells[i].setAttribute("aria-selected", "true");
        if (focus) cells[i].focus();
    }
    function columns() {
        const cells = at("nodes").children;
        let i = 1;
        while (i < cells.length && cells[i].offsetTop === cells[0].offsetTop) ++i;
        return i;
    }

    // ---- the past

    function entry_item(entry, until) {
        const item = make("li");
        item.append(clock(entry.at));
        const by = entry.leader ? ", led by " + entry.leader : "";
        item.append(make("strong", entry.kind === "end" ? "end, code " + entry.code
            : entry.kind === "takeover" ? "generation " + entry.generation + " goes on"
            : entry.kind === "allocation" ? "allocation " + entry.requeue + " begins"
            : "generation " + entry.generation));
        item.append(entry.kind === "generation"
            ? ": " + count(entry.nodes, "node") + ", " + count(entry.workers, "worker") + by +
                (until ? ", for " + span(until - entry.at) : "")
            : entry.kind === "takeover" ? by : "");
        if (entry.cause) item.append(make("span", entry.cause, "cause"));
        return item;
    }
    function past() {
        const entries = history.entries; // the newest first
        const end_of = i => i > 0 ? entries[i - 1].at : 0;
        const items = entries.map((entry, i) => entry_item(entry, end_of(i)));
        if (items.length === 0) items.push(make("li", history.fault || "nothing is recorded yet"));
        at("entries").replaceChildren(...items.slice(0, ENTRIES));
        const left = history.entries_left_out;
        at("older").hidden = items.length <= ENTRIES;
        at("older-entries").replaceChildren(...items.slice(ENTRIES),
            ...(left ? [make("li", "and " + left + " more: see ddpctl history")] : []));
        const last = entries[0] && entries[0].kind === "end" ? entries[0].at : now();
        at("strip").replaceChildren(...entries.map((entry, i) => {
            const part = make("span");
            part.style.flexGrow = String(Math.max(1, (end_of(i) || last) - entry.at));
            if (entry.kind === "end" || entry.kind === "allocation") part.className = "apart";
            else if (i === 0) part.className = "newest";
            return part;
        }).filter((_, i) => entries[i].kind !== "end").reverse());
    }
    function spent() {
        const parts = history.parts.filter(([, , seconds]) => seconds > 0)
            .map(([name, words, seconds]) => [name, words, seconds * 1000]);
        const open = history.recorded_until && !status.ended ? Math.max(0, now() - history.recorded_until) : 0;
        const recorded = parts.reduce((sum, [, , ms]) => sum + ms, 0);
        if (open > 0) parts.push(["open", "since the last record, not shared out yet", open]);
        const all = recorded + open;
        const trained = parts.filter(([name]) => name === "training").reduce((sum, [, , ms]) => sum + ms, 0);
        put(at("goodput"), recorded > 0 ? "Of " + span(recorded) + " that are recorded, " + span(trained) + " (" +
            Math.round(100 * trained / recorded) + " %) were training" +
            (history.saves ? " that is kept." : "; no snapshot was reported.")
            : "Nothing is recorded yet: the first sums come with the second generation, or with the end.");
        at("parts").replaceChildren(...parts.map(([name, , ms]) => {
            const part = make("span", undefined, "part-" + name);
            part.style.flexGrow = String(ms);
            return part;
        }));
        at("part-rows").replaceChildren(...parts.map(([name, words, ms]) => {
            const row = make("tr");
            const head = make("th");
            head.scope = "row";
            head.append(make("span", undefined, "swatch part-" + name), words);
            row.append(head, make("td", span(ms)), make("td", Math.round(100 * ms / all) + " %"));
            return row;
        }));
        const causes = Object.entries(history.causes).filter(([, number]) => number > 0);
        put(at("causes"), causes.length === 0 ? ""
            : "Restarts by cause: " + causes.map(([name, number]) => number + " " + name).join(", "));
    }

    // ---- whether it is true now

    function truth() {
        const [kind, mark, words] = headline();
        at("headline").className = kind;
        at("headline").dataset.mark = mark;
        put(at("headline"), words);
        document.title = mark + " " + status.name + " " + words;
        document.body.classList.toggle("stale", old());
        at("banner").hidden = !old() && status.link !== "silent";
        at("banner").className = "banner " + (old() ? "bad" : "calm");
        put(at("banner"), refused ? "ddpctl page does not let this page in any more. If it was started again, open " +
                "the address that it has printed."
            : away() ? "The connection to ddpctl page is lost. It is tried again."
            : status.link === "lost" ? "The job does not answer, and is asked again: " + (status.why || "")
            : status.link === "silent" ? "What you see is from the ledger: " + (status.why || "") : "");
        put(at("link"), away() ? "not connected" : { answers: "live", lost: "the job does not answer",
            ended: "from its ledger", silent: "from its ledger", asking: "asking the job" }[status.link]);
        put(at("age"), old() ? "What you see is " + span(now() - moment()) + " old." : "Up to date.");
    }
    function show() {
        put(at("name"), status.name);
        put(at("ledger"), "Ledger: " + status.ledger + (status.run_id ? ", run " + status.run_id : "") +
            (status.nodes_left_out ? "; " + count(status.nodes_left_out, "node") + " too many to be shown" : ""));
        facts();
        nodes();
        truth();
    }

    function listen() {
        source = new EventSource("events");
        const on = (name, take) => source.addEventListener(name, event => {
            heard = performance.now();
            refused = broken = false;
            take(JSON.parse(event.data));
        });
        on("status", data => { status = data; show(); });
        on("history", data => { history = data; past(); spent(); });
        on("beat", data => { ahead = data.now - Date.now(); truth(); });
        source.addEventListener("error", () => {
            broken = true; // the browser tries again, unless it was refused
            refused = source.readyState === EventSource.CLOSED;
            truth();
            if (refused) setTimeout(listen, 5000);
        });
    }

    const box = at("nodes");
    box.addEventListener("mouseover", event => show_node(event.target.closest(".node")));
    box.addEventListener("focusin", event => show_node(event.target.closest(".node")));
    box.addEventListener("click", event => {
        const i = Array.prototype.indexOf.call(box.children, event.target.closest(".node"));
        if (i >= 0) choose(i, true);
    });
    box.addEventListener("keydown", event => {
        const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns(), ArrowUp: -columns(), Home: -chosen,
            End: box.childElementCount - 1 - chosen };
        if (!Object.hasOwn(steps, event.key) || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        choose(chosen + steps[event.key], true);
    });
    at("table-of-nodes").addEventListener("toggle", node_table);
    show();
    past();
    spent();
    setInterval(() => { facts(); truth(); if (!status.ended) spent(); }, 1000);
    listen();
})();
