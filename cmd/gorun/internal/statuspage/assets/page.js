// Shows what /events says. Everything that comes from a job is set as text, never as HTML.
"use strict";
(() => {
  const shapes = { running: "●", succeeded: "✔", failed: "✖", stopped: "■" };
  const maxRanks = 256, maxLines = 500;
  const $ = (id) => document.getElementById(id);
  let doc = null, arrived = 0, tail = null, lines = [], unfinished = {};

  const el = (name, attributes, ...children) => {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
    e.append(...children.map((c) => (c instanceof Node ? c : document.createTextNode(String(c)))));
    return e;
  };
  const svg = (name, attributes, text) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const count = (n, what) => n + " " + what + (n === 1 ? "" : "s");
  const now = () => Date.parse(doc.now) + (Date.now() - arrived);
  const ago = (time) => {
    let s = Math.max(0, Math.round((now() - Date.parse(time)) / 1000));
    const parts = [];
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"]]) {
      if (s >= size) { parts.push(Math.floor(s / size) + unit); s %= size; }
    }
    parts.push(s + "s");
    return parts.slice(0, 2).join(" ");
  };
  const since = (time) => el("time", { datetime: time }, ago(time));

  function choose(rank) {
    $("rank").value = rank;
    const begin = () => { lines = []; unfinished = {}; $("log").textContent = ""; $("tail").textContent = ""; };
    begin();
    if (tail) tail.close();
    tail = new EventSource("/logs?rank=" + encodeURIComponent(rank));
    tail.onopen = begin;
    tail.onerror = () => {
      $("tail").textContent = "no output to be had";
      if (tail.readyState === EventSource.CLOSED) setTimeout(() => { if ($("rank").value === String(rank)) choose(rank); }, 5000);
    };
    tail.onmessage = (m) => {
      for (const l of JSON.parse(m.data)) {
        if (l.missed) lines.push("[earlier lines are not kept]");
        const text = (l.stream === "stderr" ? "! " : "  ") + l.text;
        delete unfinished[l.stream];
        if (l.unfinished) unfinished[l.stream] = text; else lines.push(text);
      }
      lines = lines.slice(-maxLines);
      const log = $("log"), atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 20;
      log.textContent = lines.concat(Object.values(unfinished)).join("\n");
      if (atEnd) log.scrollTop = log.scrollHeight;
    };
    if (doc) showNodes();
  }

  function newest() {
    let n = null;
    for (const c of doc.job.nodes || []) if (c.round && (!n || c.round.round > n.round.round)) n = c;
    return n;
  }

  function showHeader() {
    const n = newest(), nodes = doc.job.nodes || [];
    $("job").textContent = doc.job.job + (nodes.length ? ": " + (n || nodes[0]).program : "");
    document.title = doc.job.job + " · gorun";
    $("summary").textContent = n
      ? "round " + n.round.round + " of " + count(n.round.nodes, "node") + " and " + count(n.round.world_size, "rank") + ", " +
        n.round.restarts + " of " + n.max_restarts + " restarts used"
      : "no round yet";
    for (const c of nodes) if (c.waiting) $("summary").textContent += "; " + c.host + " waits for " + c.waiting.for;
    let sent = 0;
    for (const c of nodes) for (const w of c.workers || []) if (w.collectives) sent += w.collectives.sent_bytes_per_second;
    if (sent) $("summary").textContent += "; all ranks send " + (sent / 1e6).toFixed(1) + " MB/s in collectives";
    let failure = null;
    for (const c of nodes) if (c.failure && (!failure || c.failure.at > failure.at)) failure = { ...c.failure, host: c.host };
    $("failure").hidden = !failure;
    if (failure) $("failure").textContent = "✖ last failure " + ago(failure.at) + " ago, in round " + failure.round + " on " + failure.host + ": " + failure.text;
  }

  function showNodes() {
    const chosen = $("rank").value;
    $("nodes").replaceChildren(...(doc.job.nodes || []).map((n) => {
      const ranks = el("td", { class: "ranks" });
      for (const w of n.workers || []) {
        const b = el("button", { type: "button", "aria-label": "rank " + w.rank + ": " + w.state, title: "rank " + w.rank + ": " + w.state,
          "aria-pressed": String(w.rank) === chosen }, el("span", { class: w.state, "aria-hidden": "true" }, shapes[w.state] || "?"), " " + w.rank);
        b.addEventListener("click", () => choose(w.rank));
        ranks.append(b);
      }
      const state = n.problem ? el("td", { class: "problem text" }, "⚠ no answer: " + n.problem) : el("td", { title: n.why }, n.state);
      return el("tr", {}, el("td", {}, n.round ? n.round.node_rank : "-"), el("td", { class: "text" }, n.host), state,
        el("td", {}, n.problem || !n.since ? "" : since(n.since)), ranks);
    }));
  }

  function showRanks() {
    const all = [];
    for (const n of doc.job.nodes || []) for (const w of n.workers || []) all.push([n, w]);
    $("ranks").replaceChildren(...all.slice(0, maxRanks).map(([n, w]) => el("tr", {},
      el("td", {}, w.rank), el("td", {}, n.round ? n.round.node_rank : "-"), el("td", {}, w.pid),
      el("td", { class: w.state }, (shapes[w.state] || "?") + " " + w.state), el("td", {}, since(w.exit ? w.exit.at : w.started)),
      el("td", {}, w.restarts), el("td", {}, w.collectives ? w.collectives.per_second.toFixed(0) : ""),
      el("td", {}, w.collectives ? (w.collectives.sent_bytes_per_second / 1e6).toFixed(1) : ""), el("td", { class: "text" }, w.exit ? w.exit.text : w.doing || ""))));
    $("more").hidden = all.length <= maxRanks;
    $("more").textContent = "and " + (all.length - maxRanks) + " more ranks";
  }

  function showEvents() {
    const events = doc.events || [];
    $("events").replaceChildren(...events.slice().reverse().map((e) => el("tr", {},
      el("td", {}, el("time", { datetime: e.at }, new Date(e.at).toLocaleTimeString())), el("td", {}, e.host), el("td", { class: "text" }, e.text))));
  }

  // A bar for each round, a triangle for each failure, a line for everything else.
  function showTimeline() {
    const events = doc.events || [], box = $("timeline");
    if (!events.length) { box.replaceChildren(); return; }
    const from = Date.parse(events[0].at), to = Math.max(now(), from + 1000);
    const x = (time) => 1 + 98 * (time - from) / (to - from);
    const percent = (v) => v.toFixed(3) + "%";
    const parts = [], rounds = [];
    for (const e of events) {
      const at = Date.parse(e.at), open = rounds[rounds.length - 1];
      const number = /^round (\d+) /.exec(e.text);
      if (e.event === "round_formed" && number) {
        if (open && open.number === number[1]) continue;
        if (open && !open.end) open.end = at;
        rounds.push({ number: number[1], begun: at, end: 0, text: e.text });
      } else if (e.event === "round_over") {
        if (open && !open.end) open.end = at;
      }
    }
    for (const r of rounds) {
      const left = x(r.begun), right = x(r.end || to);
      const bar = svg("rect", { class: "round", x: percent(left), y: 22, width: percent(Math.max(0.2, right - left)), height: 22 });
      bar.append(svg("title", {}, r.text));
      parts.push(bar);
      if (right - left > 4) parts.push(svg("text", { x: percent(left + 0.4), y: 38 }, "round " + r.number));
    }
    for (const e of events) {
      if (e.event === "round_formed" || e.event === "round_over") continue;
      const at = percent(x(Date.parse(e.at)));
      const isFailure = e.event === "worker_failed" || e.event === "worker_hangs" || e.event === "round_revoked" || e.event === "node_lost";
      const holder = svg("svg", { x: at, y: 0, width: 1, height: 60, overflow: "visible" });
      holder.append(isFailure ? svg("path", { class: "failure", d: "M0 20 L-6 8 L6 8 Z" }) : svg("line", { class: "tick", x1: 0, y1: 14, x2: 0, y2: 50 }));
      holder.append(svg("title", {}, e.host + ": " + e.text));
      parts.push(holder);
    }
    parts.push(svg("text", { x: "1%", y: 66 }, new Date(from).toLocaleTimeString()));
    parts.push(svg("text", { x: "99%", y: 66, "text-anchor": "end" }, "now"));
    box.replaceChildren(...parts);
  }

  function show() { showHeader(); showNodes(); showTimeline(); showEvents(); showRanks(); }

  const stream = new EventSource("/events");
  stream.onmessage = (m) => { doc = JSON.parse(m.data); arrived = Date.now(); document.body.dataset.live = "yes"; show(); };
  stream.onerror = () => {
    $("summary").textContent = "gorun does not answer: the job has ended on the node that serves this page, or the connection is broken";
    document.body.dataset.live = "no";
  };
  setInterval(() => {
    for (const t of document.querySelectorAll("#nodes time, #ranks time")) t.textContent = ago(t.getAttribute("datetime"));
  }, 1000);
  $("rank").addEventListener("change", () => choose($("rank").value));
  choose(0);
})();
