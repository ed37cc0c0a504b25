#include "cli/graph_page.h"

namespace chute::cli {

const char *const kGraphPageHead = R"PAGE(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>chute</title>
<style>
:root { --back:#f6f7f9; --card:#fff; --line:#d9dde3; --ink:#1d2430; --soft:#667085; --mark:#2f6fed;
  --hit:#fff3c4; --wire:#a9b2c0; --group:#eaf0fd; }
@media (prefers-color-scheme: dark) { :root { --back:#14171c; --card:#1e2229; --line:#343a45;
  --ink:#e6e9ee; --soft:#98a2b3; --mark:#7aa5ff; --hit:#4a3f14; --wire:#566070; --group:#222b3d; } }
* { box-sizing: border-box; }
body { margin:0; height:100vh; display:grid; grid-template:auto 1fr / 270px 1fr 340px; overflow:hidden;
  font:13px/1.45 system-ui, "Segoe UI", sans-serif; color:var(--ink); background:var(--back); }
header { grid-column:1/4; display:flex; gap:16px; align-items:center; padding:10px 16px;
  background:var(--card); border-bottom:1px solid var(--line); }
header b { font-size:15px; } header span { color:var(--soft); flex:1; overflow:hidden;
  text-overflow:ellipsis; white-space:nowrap; }
label { color:var(--soft); } input { width:320px; margin-left:6px; padding:6px 10px; border:1px solid var(--line); border-radius:6px; font:inherit;
  color:var(--ink); background:var(--back); }
nav, aside { overflow:auto; background:var(--card); padding:10px 0; }
nav { border-right:1px solid var(--line); } aside { border-left:1px solid var(--line); padding:14px 16px; }
nav div.row { padding:2px 10px; cursor:pointer; white-space:nowrap; overflow:hidden; text-overflow:ellipsis; }
nav div.row:hover { background:var(--group); } nav .here { background:var(--group); font-weight:600; }
nav .n { color:var(--soft); font-weight:400; margin-left:6px; font-size:12px; }
nav .fold { display:inline-block; width:16px; color:var(--soft); }
#stage { position:relative; overflow:hidden; display:flex; flex-direction:column; }
#crumbs { padding:8px 14px; border-bottom:1px solid var(--line); display:flex; gap:4px; flex-wrap:wrap;
  align-items:center; }
#crumbs a, aside a { color:var(--mark); cursor:pointer; text-decoration:none; }
#crumbs a:hover, aside a:hover { text-decoration:underline; }
#crumbs .gap { flex:1; } button { font:inherit; border:1px solid var(--line); border-radius:5px;
  background:var(--card); color:inherit; padding:1px 9px; cursor:pointer; }
#view { flex:1; overflow:auto; position:relative; } #sheet { position:relative; transform-origin:0 0; }
svg { position:absolute; left:0; top:0; pointer-events:none; overflow:visible; }
path { fill:none; stroke:var(--wire); stroke-width:1.4; } path.on { stroke:var(--mark); stroke-width:2.4; }
path.back { stroke-dasharray:4 4; }
.node { position:absolute; width:196px; height:48px; padding:5px 10px; border:1px solid var(--line);
  border-left:5px solid; border-radius:6px; background:var(--card); cursor:pointer; overflow:hidden; }
.node:hover { box-shadow:0 2px 8px #0003; } .node.group { background:var(--group); border-radius:12px; }
.node.sel { outline:2.5px solid var(--mark); outline-offset:1px; } .node.port { border:1.5px dashed var(--wire); padding-left:14px; }
.node b, .node i { display:block; white-space:nowrap; overflow:hidden; text-overflow:ellipsis; }
.node b { font-size:12.5px; } .node i { font-style:normal; color:var(--soft); font-size:11.5px; }
aside h2 { font-size:15px; margin:0 0 2px; overflow-wrap:anywhere; } aside h3 { font-size:12px; margin:14px 0 4px;
  color:var(--soft); font-weight:600; text-transform:uppercase; letter-spacing:.04em; }
aside .v { margin:3px 0; overflow-wrap:anywhere; } aside code { color:var(--soft); font-size:11.5px; }
aside pre { white-space:pre-wrap; overflow-wrap:anywhere; margin:0; font-size:12px; }
.bar { display:grid; grid-template-columns:1fr 52px; gap:8px; margin:2px 0; }
.bar span:last-child { text-align:right; color:var(--soft); }
.bar span:first-child { background:linear-gradient(var(--group),var(--group)) no-repeat; background-size:var(--w) 100%;
  padding-left:5px; border-radius:3px; white-space:nowrap; }
.hit { padding:5px 8px; border-radius:5px; cursor:pointer; overflow-wrap:anywhere; } .hit:hover { background:var(--group); }
.hit mark { background:var(--hit); color:inherit; } .hit i { display:block; font-style:normal; color:var(--soft); font-size:11.5px; }
</style></head><body>
<header><b id="title"></b><span id="facts"></span>
<label>Search <input id="search" type="search" title="operators, tensors, modules; press /"></label></header>
<nav id="tree"></nav>
<section id="stage"><div id="crumbs"></div><div id="view"><div id="sheet"></div></div></section>
<aside id="side"></aside>
<script id="data" type="application/json">)PAGE";

const char *const kGraphPageTail = R"PAGE(</script>
<script>
'use strict';
const D = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id), S = D.strings;
const el = (tag, cls, text) => { const e = document.createElement(tag); if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text; return e; };
const LIMIT = 300; // boxes that a level shows at most

// --- the graph: columns to arrays, once ---------------------------------------------------------
const start = [];
for (let p = 0; p < D.ops.length;) { start.push(p); p += 5 + D.ops[p + 4]; p += 1 + D.ops[p]; }
const N = start.length, V = D.names.length;
const kind = o => S[D.ops[start[o]]], pathOf = o => D.ops[start[o] + 1];
const attrsOf = o => S[D.ops[start[o] + 2]], sourceOf = o => S[D.ops[start[o] + 3]];
const insOf = o => { const p = start[o] + 4; return D.ops.slice(p + 1, p + 1 + D.ops[p]); };
const outsOf = o => { const p = start[o] + 5 + D.ops[start[o] + 4]; return D.ops.slice(p + 1, p + 1 + D.ops[p]); };
const producer = new Int32Array(V).fill(-1), usedBy = new Map();
for (let o = 0; o < N; o++) {
  for (const v of outsOf(o)) producer[v] = o;
}
function users(v) {
  if (usedBy.size === 0)
    for (let o = 0; o < N; o++) for (const w of insOf(o)) if (w >= 0) {
      const list = usedBy.get(w); if (list) list.push(o); else usedBy.set(w, [o]); }
  return usedBy.get(v) || [];
}
const nameOf = v => D.names[v] || '%' + v, typeOf = v => S[D.types[v]];
const opName = o => { const v = outsOf(o)[0]; return v === undefined ? kind(o) : nameOf(v); };
const bytesText = n => n < 1000 ? n + ' B' : n < 1e6 ? (n / 1e3).toFixed(1) + ' kB' : n < 1e9 ? (n / 1e6).toFixed(1) + ' MB' : (n / 1e9).toFixed(2) + ' GB';
const countText = n => n.toLocaleString('en') + (n === 1 ? ' operator' : ' operators');
const hue = s => { let h = 7; for (const c of s) h = (h * 31 + c.charCodeAt(0)) % 3600; return h / 10; };
const short = s => s.replace(/^(circle|aten|tosa|core)\./, '');

// --- levels: one per module path, long ones cut into runs -----------------------------------------
const kids = D.paths.map(() => []), own = D.paths.map(() => []), total = new Uint32Array(D.paths.length);
const first = new Uint32Array(D.paths.length).fill(N);
D.paths.forEach(([up], i) => { if (up >= 0) kids[up].push(i); });
for (let o = 0; o < N; o++) { const p = pathOf(o); own[p].push(o); total[p]++; if (o < first[p]) first[p] = o; }
for (let i = D.paths.length - 1; i > 0; i--) { const up = D.paths[i][0]; total[up] += total[i];
  if (first[i] < first[up]) first[up] = first[i]; }
const levels = D.paths.map((p, i) => ({ path: i, label: i ? S[p[1]] : 'model', up: null, count: total[i], first: first[i] }));
D.paths.forEach((p, i) => { if (i) levels[i].up = levels[p[0]]; });
function itemsOf(level) {
  if (level.items) return level.items;
  let items = [...kids[level.path].map(k => ({ level: levels[k], first: first[k] })), ...own[level.path].map(o => ({ op: o, first: o }))];
  items.sort((a, b) => a.first - b.first);
  return level.items = cut(level, items);
}
const label = x => x.level ? x.level.label : opName(x.op);
function cut(level, items) {
  if (items.length <= LIMIT) return items;
  const size = Math.max(100, Math.ceil(items.length / 200)), out = [];
  for (let i = 0; i < items.length; i += size) {
    const part = items.slice(i, i + size);
    const run = { path: -1, label: label(part[0]) + ' … ' + label(part[part.length - 1]), up: level, first: part[0].first, run: true,
      count: part.reduce((n, x) => n + (x.level ? x.level.count : 1), 0) };
    for (const x of part) if (x.level) x.level.up = run;
    run.items = cut(run, part);
    out.push({ level: run, first: run.first });
  }
  return out;
}
function opsIn(item, out) {
  const stack = [item];
  while (stack.length) {
    const x = stack.pop();
    if (x.op !== undefined) { out.push(x.op); continue; }
    if (x.level.run) { stack.push(...x.level.items); continue; }
    const paths = [x.level.path];
    while (paths.length) { const p = paths.pop(); for (const o of own[p]) out.push(o); paths.push(...kids[p]); }
  }
  return out;
}
function holds(item, o) {
  if (item.op !== undefined) return item.op === o;
  if (item.level.run) return item.level.items.some(x => holds(x, o));
  for (let p = pathOf(o); p >= 0; p = D.paths[p][0]) if (p === item.level.path) return true;
  return false;
}
const fullName = level => { const out = []; for (let l = level; l && l.up; l = l.up) if (!l.run) out.unshift(l.label); return out.join('.'); };

// --- drawing a level ------------------------------------------------------------------------------
const W = 196, H = 48, GX = 26, GY = 40;
const home = new Int32Array(N).fill(-1);
let current = null, selected = -1, zoom = 1, drawn = [];
function show(level, op) {
  current = level;
  home.fill(-1);
  const items = itemsOf(level), nodes = items.map((item, i) => {
    for (const o of opsIn(item, [])) home[o] = i;
    return { item, into: [], outof: [] }; });
  const ports = new Map(), edges = new Map();
  const port = (v, side) => { const key = side + v; let i = ports.get(key);
    if (i === undefined) { i = nodes.length; ports.set(key, i); nodes.push({ port: v, side, into: [], outof: [] }); } return i; };
  const join = (a, b, v) => { if (a === b) return; const key = a * 1e6 + b, e = edges.get(key);
    if (e) e.n++; else { const edge = { a, b, n: 1, v }; edges.set(key, edge); nodes[a].outof.push(b); nodes[b].into.push(a); } };
  let shown = 0;
  for (let o = 0; o < N; o++) {
    if (home[o] < 0) continue;
    shown++;
    for (const v of insOf(o)) {
      if (v < 0 || v in D.constants) continue;
      const p = producer[v];
      if (p >= 0 && home[p] >= 0) join(home[p], home[o], v); else join(port(v, 'in'), home[o], v);
    }
  }
  D.outputs.forEach(v => { if (v >= 0 && producer[v] >= 0 && home[producer[v]] >= 0) join(home[producer[v]], port(v, 'out'), v); });
  layout(nodes);
  const sheet = $('sheet');
  sheet.replaceChildren();
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  sheet.append(svg);
  let right = 0, bottom = 0;
  drawn = nodes;
  nodes.forEach((n, i) => {
    const e = n.e = el('div', 'node');
    if (n.port !== undefined) { e.classList.add('port'); e.append(el('b', '', nameOf(n.port)), el('i', '', (n.side === 'in' ? 'in  ' : 'out  ') + typeOf(n.port)));
      e.onclick = () => pickValue(n.port); }
    else if (n.item.op !== undefined) { const o = n.item.op, v = outsOf(o)[0]; e.append(el('b', '', short(kind(o))), el('i', '', (v === undefined ? '' : nameOf(v) + '  ' + typeOf(v))));
      e.style.borderLeftColor = `hsl(${hue(kind(o))} 60% 52%)`; e.title = opName(o); e.onclick = () => pick(o, false); }
    else { const l = n.item.level; e.classList.add('group'); e.append(el('b', '', l.label), el('i', '', countText(l.count)));
      e.style.borderLeftColor = 'var(--mark)'; e.title = 'open ' + l.label; e.onclick = () => go(l); }
    e.style.left = n.x + 'px'; e.style.top = n.y + 'px';
    right = Math.max(right, n.x + W); bottom = Math.max(bottom, n.y + H);
    sheet.append(e);
  });
  for (const e of edges.values()) {
    const a = nodes[e.a], b = nodes[e.b], back = b.y <= a.y, x1 = a.x + W / 2, y1 = a.y + H, x2 = b.x + W / 2, y2 = b.y;
    const p = document.createElementNS('http://www.w3.org/2000/svg', 'path'), far = b.layer - a.layer > 1 && Math.abs(x1 - x2) < W;
    const side = far ? a.x + W + GX / 2 : 0, bend = Math.min(30, Math.abs(y2 - y1) / 2);
    p.setAttribute('d', far ? `M${x1} ${y1} C${x1} ${y1 + bend} ${side} ${y1} ${side} ${y1 + 40} L${side} ${y2 - 40} C${side} ${y2} ${x2} ${y2 - bend} ${x2} ${y2}`
      : `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`);
    if (back) p.classList.add('back');
    e.p = p; svg.append(p); (a.wires = a.wires || []).push(p); (b.wires = b.wires || []).push(p);
  }
  svg.setAttribute('width', right + 40); svg.setAttribute('height', bottom + 40);
  sheet.style.width = right + 40 + 'px'; sheet.style.height = bottom + 40 + 'px';
  crumbs(); tree();
  document.documentElement.dataset.level = fullName(level); document.documentElement.dataset.boxes = nodes.length;
  if (op === undefined) { describeLevel(level, shown); const top = nodes.reduce((t, n) => n.y < t.y ? n : t, nodes[0] || { x: 0, y: 0 });
    $('view').scrollTo(Math.max(0, (top.x + W / 2) * zoom - $('view').clientWidth / 2), 0); }
}
/// Longest path from above; within a layer near what comes before.
function layout(nodes) {
  const order = nodes.map((n, i) => i).sort((a, b) => rank(nodes[a]) - rank(nodes[b]) || a - b), place = new Map(order.map((n, i) => [n, i]));
  for (const i of order) { let layer = 0; for (const j of nodes[i].into) if (place.get(j) < place.get(i)) layer = Math.max(layer, nodes[j].layer + 1); nodes[i].layer = layer; }
  // An input stands just above its first reader.
  for (const n of nodes) if (n.side === 'in' && n.outof.length) n.layer = Math.max(0, Math.min(...n.outof.map(j => nodes[j].layer)) - 1);
  const layers = [];
  for (const i of order) (layers[nodes[i].layer] = layers[nodes[i].layer] || []).push(i);
  layers.forEach((row, l) => {
    for (const i of row) { const from = nodes[i].into.filter(j => nodes[j].layer < l && nodes[j].x !== undefined);
      nodes[i].want = from.length ? from.reduce((s, j) => s + nodes[j].x, 0) / from.length : 0; }
    row.sort((a, b) => nodes[a].want - nodes[b].want || a - b);
    let x = -Infinity, off = 0;
    for (const i of row) { x = Math.max(nodes[i].want, x + W + GX); nodes[i].x = x; off += x - nodes[i].want; }
    for (const i of row) nodes[i].x -= off / row.length;
    for (const i of row) nodes[i].y = 20 + l * (H + GY);
  });
  const left = nodes.reduce((m, n) => Math.min(m, n.x), 0), right = nodes.reduce((m, n) => Math.max(m, n.x + W), 0);
  const spare = Math.max(0, ($('view').clientWidth - (right - left) - 60) / 2); // a narrow drawing stands in the middle
  for (const n of nodes) n.x += 30 + spare - left;
}
const rank = n => n.port === undefined ? n.item.first : n.side === 'in' ? -1 : N;

// --- around the drawing ---------------------------------------------------------------------------
function go(level) { selected = -1; show(level); }
function crumbs() {
  const bar = $('crumbs'), chain = [];
  for (let l = current; l; l = l.up) chain.unshift(l);
  bar.replaceChildren();
  chain.forEach((l, i) => { if (i) bar.append(el('span', '', '›')); const a = el(l === current ? 'b' : 'a', '', l.label); if (l !== current) a.onclick = () => go(l); bar.append(a); });
  bar.append(el('span', 'gap'));
  for (const [text, f] of [['−', .8], ['+', 1.25]]) { const b = el('button', '', text); b.title = 'zoom'; b.onclick = () => rescale(zoom * f); bar.append(b); }
  const b = el('button', '', 'fit'); b.onclick = () => rescale(Math.min(1, $('view').clientWidth / $('sheet').offsetWidth, $('view').clientHeight / $('sheet').offsetHeight)); bar.append(b);
}
function rescale(z) { zoom = Math.min(2, Math.max(.05, z)); $('sheet').style.transform = `scale(${zoom})`; }
const open = new Set();
function tree() {
  for (let l = current; l; l = l.up) open.add(l);
  const rows = [], add = (l, depth) => {
    rows.push([l, depth]);
    if (open.has(l)) for (const item of itemsOf(l)) if (item.level) add(item.level, depth + 1);
  };
  add(levels[0], 0);
  const nav = $('tree');
  nav.replaceChildren();
  for (const [l, depth] of rows.slice(0, 3000)) {
    const row = el('div', l === current ? 'row here' : 'row'), more = itemsOf(l).some(x => x.level);
    row.style.paddingLeft = 8 + depth * 13 + 'px';
    const fold = el('span', 'fold', more ? (open.has(l) ? '▾' : '▸') : '');
    fold.onclick = e => { e.stopPropagation(); if (open.has(l)) open.delete(l); else open.add(l); const keep = nav.scrollTop; treeOnly(); nav.scrollTop = keep; };
    row.append(fold, el('span', '', l.label), el('span', 'n', l.count.toLocaleString('en')));
    row.onclick = () => go(l);
    nav.append(row);
  }
  nav.querySelector('.here')?.scrollIntoView({ block: 'nearest' });
}
function treeOnly() { const c = current, was = open.has(c); tree(); if (!was) open.delete(c); }
function link(text, f) { const a = el('a', '', text); a.onclick = f; return a; }
function valueRow(v, label) {
  const row = el('div', 'v');
  if (v < 0) { row.append('none'); return row; }
  const p = producer[v];
  row.append(label ? label + ' ' : '', p >= 0 ? link(nameOf(v), () => pick(p, true)) : nameOf(v), ' ', el('code', '', typeOf(v) + (v in D.constants ? '  constant, ' + bytesText(D.constants[v]) : '')));
  return row;
}
function describe(o) {
  const side = $('side'); side.replaceChildren(el('h2', '', kind(o)), el('div', 'v', opName(o)));
  const part = (title, ...rows) => { if (rows.length) side.append(el('h3', '', title), ...rows); };
  const where = levels[pathOf(o)];
  if (where.up) { const row = el('div', 'v'); row.append(link(fullName(where), () => go(where))); part('module', row); }
  if (sourceOf(o)) part('source', el('div', 'v', sourceOf(o)));
  part('operands', ...insOf(o).map((v, i) => valueRow(v, i + ':')));
  part('results', ...outsOf(o).map(v => { const row = el('div', 'v'); row.append(nameOf(v), ' ', el('code', '', typeOf(v)));
    const list = users(v).slice(0, 50); list.forEach((u, i) => { const r = el('div', 'v'); r.style.paddingLeft = '12px'; r.append(i ? '' : '', link(short(kind(u)) + ' ' + opName(u), () => pick(u, true))); row.append(r); });
    if (D.outputs.includes(v)) row.append(el('div', 'v', 'an output of the model')); return row; }));
  if (attrsOf(o)) part('attributes', el('pre', '', attrsOf(o)));
}
function describeLevel(level, shown) {
  const side = $('side'), count = new Map(); let weights = 0; const seen = new Set();
  for (const item of itemsOf(level)) for (const o of opsIn(item, [])) { count.set(kind(o), (count.get(kind(o)) || 0) + 1);
    for (const v of insOf(o)) if (v in D.constants && !seen.has(v)) { seen.add(v); weights += D.constants[v]; } }
  side.replaceChildren(el('h2', '', fullName(level) || D.title), el('div', 'v', `${countText(shown)}, ${seen.size.toLocaleString('en')} constants (${bytesText(weights)})`));
  const rows = [...count].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)), most = rows.length ? rows[0][1] : 1;
  side.append(el('h3', '', 'operators'));
  for (const [name, n] of rows) { const row = el('div', 'bar'), label = el('span', '', name); label.style.setProperty('--w', 100 * n / most + '%'); row.append(label, el('span', '', n.toLocaleString('en'))); side.append(row); }
  if (level === levels[0]) for (const [title, list] of [['inputs', D.inputs], ['outputs', D.outputs]]) {
    side.append(el('h3', '', title)); for (const v of list.slice(0, 100)) if (v >= 0) side.append(valueRow(v)); }
}
function pickValue(v) { const p = producer[v]; if (p >= 0) pick(p, true); else { const u = users(v); $('side').replaceChildren(el('h2', '', nameOf(v)), el('div', 'v', typeOf(v)), el('h3', '', 'used by'),
  ...u.slice(0, 200).map(o => { const r = el('div', 'v'); r.append(link(short(kind(o)) + ' ' + opName(o), () => pick(o, true))); return r; })); } }
function pick(o, travel) {
  if (travel || !current) {
    let level = levels[0];
    for (;;) { const item = itemsOf(level).find(x => holds(x, o)); if (!item || item.op !== undefined) break; level = item.level; }
    if (level !== current) show(level, o);
  }
  selected = o;
  for (const n of drawn) { const on = n.item?.op === o; n.e.classList.toggle('sel', on); }
  for (const n of drawn) n.wires?.forEach(p => p.classList.remove('on'));
  const node = drawn.find(n => n.item?.op === o);
  if (node) { node.wires?.forEach(p => p.classList.add('on'));
    if (travel) $('view').scrollTo((node.x + W / 2) * zoom - $('view').clientWidth / 2, (node.y + H / 2) * zoom - $('view').clientHeight / 2); }
  document.documentElement.dataset.selected = o;
  describe(o);
}

// --- search ---------------------------------------------------------------------------------------
function search(text) {
  const want = text.trim().toLowerCase(), side = $('side');
  if (!want) { describeLevel(current, current.count); return; }
  const hits = []; let found = 0;
  const mark = (s, e) => { const at = s.toLowerCase().indexOf(want); if (at < 0) e.append(s); else e.append(s.slice(0, at), el('mark', '', s.slice(at, at + want.length)), s.slice(at + want.length)); };
  const hit = (title, below, f) => { const e = el('div', 'hit'); mark(title, e); const i = el('i'); mark(below, i); e.append(i); e.onclick = f; hits.push(e); };
  levels.forEach((l, i) => { if (i && l.label.toLowerCase().includes(want)) { found++; if (hits.length < 200) hit(fullName(l), countText(l.count), () => go(l)); } });
  for (let o = 0; o < N; o++) {
    let ok = kind(o).toLowerCase().includes(want);
    if (!ok) for (const v of outsOf(o)) if (nameOf(v).toLowerCase().includes(want)) { ok = true; break; }
    if (!ok) continue;
    found++;
    if (hits.length < 200) hit(opName(o), kind(o) + '  ' + fullName(levels[pathOf(o)]), () => pick(o, true));
  }
  side.replaceChildren(el('h2', '', found.toLocaleString('en') + ' found'), ...hits);
  if (found > hits.length) side.append(el('div', 'v', `the first ${hits.length} are shown`));
  document.documentElement.dataset.found = found;
}
let waiting = 0;
$('search').oninput = e => { clearTimeout(waiting); waiting = setTimeout(() => search(e.target.value), 120); };
addEventListener('keydown', e => { if (e.key === '/' && document.activeElement !== $('search')) { e.preventDefault(); $('search').focus(); }
  if (e.key === 'Escape') { $('search').value = ''; if (current.up) go(current.up); } });
$('view').addEventListener('wheel', e => { if (e.ctrlKey) { e.preventDefault(); rescale(zoom * (e.deltaY < 0 ? 1.1 : .9)); } }, { passive: false });

document.title = D.title + ' · chute';
$('title').textContent = D.title; $('facts').textContent = D.facts;
// A level that holds nothing but another one is no place to start.
let begin = levels[0];
for (;;) { const items = itemsOf(begin); if (items.length === 1 && items[0].level) begin = items[0].level; else break; }
show(begin);
const asked = new URLSearchParams(location.hash.slice(1));
if (asked.has('search')) { $('search').value = asked.get('search'); search(asked.get('search')); }
if (asked.has('op')) pick(+asked.get('op'), true);
if (asked.has('level')) { const l = levels.find(x => fullName(x) === asked.get('level')); if (l) go(l); }
Object.assign(document.documentElement.dataset, { operators: N, ready: 1 });
</script></body></html>
)PAGE";

} // namespace chute::cli
