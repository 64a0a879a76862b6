// The graph page: draws computations as boxes that can be opened, and shows facts of instructions.
'use strict';

(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const byId = (id) => document.getElementById(id);
  const LETTER = 6.75, LINE = 15, PAD = 9, CAPTION = 20, MOST_LETTERS = 44;
  const SVG = 'http://www.w3.org/2000/svg';
  const open = new Set();      // paths of boxes that are open
  const drawn = new Map();     // path -> {element}
  let chosen = null, matches = [], match = -1, view = { x: 0, y: 0, k: 1 };

  // ---- Paths and positions ----

  // A path is "" for the entry computation, plus "/instruction.slot" for each box around it.
  const computationAt = (path) => {
    let c = data.entry;
    for (const step of path.split('/').slice(1)) {
      const [i, slot] = step.split('.').map(Number);
      c = data.computations[c].instructions[i].c[slot][1];
    }
    return c;
  };
  const nodePath = (graph, i) => `${graph}/${i}`;
  const instructionAt = (path) => {
    const cut = path.lastIndexOf('/');
    const computation = computationAt(path.slice(0, cut));
    return { graph: path.slice(0, cut), computation, index: +path.slice(cut + 1),
             instruction: data.computations[computation].instructions[+path.slice(cut + 1)] };
  };
  // The first path to each computation.
  const ways = new Map([[data.entry, '']]);
  for (const c of ways.keys()) {
    data.computations[c].instructions.forEach((one, i) => (one.c || []).forEach(([, called], slot) => {
      if (!ways.has(called)) ways.set(called, `${ways.get(c)}/${i}.${slot}`);
    }));
  }

  const cut = (text) => (text.length <= MOST_LETTERS ? text : `${text.slice(0, MOST_LETTERS - 1)}…`);
  const isInline = (one) => one.v !== undefined;
  function title(one, all) {
    const inline = (one.i || []).some((i) => isInline(all[i]));
    if (!inline) return one.t;
    return `${one.t}(${one.i.map((i) => (isInline(all[i]) ? all[i].v : '·')).join(', ')})`;
  }

  // ---- Boxes ----

  function box(graph, i, all) {
    const one = all[i], path = nodePath(graph, i);
    const lines = [cut(title(one, all)), cut(one.n), cut(one.s)];
    const made = { path, one, lines, parts: [], isOpen: open.has(path) };
    made.w = 2 * PAD + LETTER * Math.max(...lines.map((l, n) => l.length + (n === 0 && one.c ? 3 : 0)));
    made.h = 3 * LINE + 8;
    if (made.isOpen) {
      let w = PAD, h = 0;
      one.c.forEach(([role, called], slot) => {
        const part = picture(`${path}.${slot}`, called);
        part.caption = cut(`${role}: ${data.computations[called].name}`);
        part.x = w;
        const wide = Math.max(part.w, LETTER * part.caption.length);
        w += wide + 2 * PAD;
        h = Math.max(h, part.h);
        part.wide = wide;
        made.parts.push(part);
      });
      made.w = Math.max(2 * PAD + LETTER * Math.max(...lines.slice(0, 2).map((l) => l.length + 4), lines[2].length + 2), w + PAD);
      made.h = 3 * LINE + 8 + CAPTION + h + 2 * PAD;
    }
    return made;
  }

  // The boxes of a computation and their positions. Scalar constants are in their users' titles.
  function picture(graph, c) {
    const all = data.computations[c].instructions;
    const numbers = new Map(), boxes = [];
    all.forEach((one, i) => {
      if (isInline(one) && i !== data.computations[c].root) return;
      numbers.set(i, boxes.length);
      boxes.push(box(graph, i, all));
    });
    for (const one of boxes) one.inputs = (one.one.i || []).filter((i) => numbers.has(i)).map((i) => numbers.get(i));
    const placed = layered(boxes);
    return { graph, c, boxes, placed, w: placed.w, h: placed.h };
  }

  // ---- Drawing ----

  function make(name, attributes, parent) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(made);
    return made;
  }
  const write = (parent, x, y, text, kind) => {
    make('text', { x, y, class: kind }, parent).textContent = text;
  };

  let most = { flops: 1, bytes: 1 };
  for (const c of data.computations) for (const one of c.instructions) {
    most.flops = Math.max(most.flops, one.k[0] + one.k[1]);
    most.bytes = Math.max(most.bytes, one.k[2]);
  }
  function colour(one) {
    const family = data.families[one.f], by = byId('colour').value;
    if (by === 'family') {
      return `--light:${family.fill};--dark:color-mix(in srgb, ${family.stroke} 34%, #1a1d23);--stroke:${family.stroke}`;
    }
    const part = Math.log1p(by === 'flops' ? one.k[0] + one.k[1] : one.k[2]) / Math.log1p(most[by]);
    const mixed = `color-mix(in srgb, #e2552f ${Math.round(100 * part * part)}%`;
    return `--light:${mixed}, #f2f2f2);--dark:${mixed}, #2b2e35);--stroke:#888888`;
  }

  function draw(parent, pictured, x, y) {
    const group = make('g', { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` }, parent);
    for (const edge of pictured.placed.edges) {
      make('path', { class: 'edge', d: edge.d, 'marker-end': 'url(#end)',
                     'data-from': pictured.boxes[edge.from].path, 'data-to': pictured.boxes[edge.to].path }, group);
    }
    pictured.boxes.forEach((one, n) => {
      const at = pictured.placed.boxes[n];
      const root = one.one === data.computations[pictured.c].instructions[data.computations[pictured.c].root];
      const node = make('g', { class: `node${root ? ' root' : ''}${one.isOpen ? ' group' : ''}`, 'data-path': one.path,
                               transform: `translate(${at.x.toFixed(1)} ${at.y.toFixed(1)})` }, group);
      const back = make('rect', { width: one.w.toFixed(1), height: one.h }, node);
      back.setAttribute('style', colour(one.one));
      let left = PAD;
      if (one.one.c) {
        const toggle = make('g', { class: 'toggle', 'data-toggle': one.path }, node);
        make('rect', { width: 26, height: 22 }, toggle);
        make('path', { d: one.isOpen ? 'M8 8h10l-5 7z' : 'M10 6v10l7-5z' }, toggle);
        left += 3 * LETTER;
      }
      write(node, left, LINE, one.lines[0], 'title');
      write(node, PAD, 2 * LINE, one.lines[1], 'dim');
      write(node, PAD, 3 * LINE, one.lines[2], '');
      drawn.set(one.path, { element: node });
      for (const part of one.parts) {
        const under = 3 * LINE + 8;
        make('rect', { class: 'inside', x: part.x, y: under, width: part.wide + PAD, height: one.h - under - PAD, rx: 4 }, node);
        write(node, part.x + 6, under + 14, part.caption, 'dim');
      }
    });
    // These are drawn above the boxes that contain them.
    pictured.boxes.forEach((one, n) => {
      const at = pictured.placed.boxes[n];
      for (const part of one.parts) {
        draw(group, part, at.x + part.x + PAD / 2 + (part.wide - part.w) / 2, at.y + 3 * LINE + 8 + CAPTION + PAD / 2);
      }
    });
    return group;
  }

  const svg = make('svg', { role: 'img', 'aria-label': 'graph' }, byId('stage'));
  const defs = make('defs', {}, svg);
  const marker = make('marker', { id: 'end', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
                                 markerUnits: 'userSpaceOnUse', orient: 'auto' }, defs);
  make('path', { d: 'M0 0.5L8 4L0 7.5z', class: 'tip-end' }, marker);
  const world = make('g', {}, svg);
  let whole = null;

  function redraw() {
    world.replaceChildren();
    drawn.clear();
    whole = picture('', data.entry);
    draw(world, whole, 0, 0);
    mark();
  }
  function mark() {
    for (const { element } of drawn.values()) element.classList.remove('chosen', 'match');
    for (const path of matches) drawn.get(path)?.element.classList.add('match');
    drawn.get(chosen)?.element.classList.add('chosen');
    for (const edge of world.querySelectorAll('.edge')) {
      edge.classList.toggle('near', chosen !== null && (edge.dataset.from === chosen || edge.dataset.to === chosen));
    }
  }

  // ---- Panning and zooming ----

  const apply = () => world.setAttribute('transform', `translate(${view.x.toFixed(2)} ${view.y.toFixed(2)}) scale(${view.k.toFixed(4)})`);
  function zoom(factor, x, y) {
    const k = Math.min(4, Math.max(0.01, view.k * factor));
    view = { x: x - ((x - view.x) * k) / view.k, y: y - ((y - view.y) * k) / view.k, k };
    apply();
  }
  function fit() {
    const { width, height } = byId('stage').getBoundingClientRect();
    const k = Math.min(1.2, (width - 40) / Math.max(1, whole.w), (height - 40) / Math.max(1, whole.h));
    view = { k, x: (width - whole.w * k) / 2, y: Math.max(20, (height - whole.h * k) / 2) };
    apply();
  }
  // The initial view of large graphs: a readable scale, with the top visible.
  function begin() {
    fit();
    if (view.k >= 0.45) return;
    const { width } = byId('stage').getBoundingClientRect();
    view.k = 0.7;
    // Starts at the topmost box that has operands, because parameters may be far apart.
    let first = 0;
    const places = whole.placed.boxes;
    whole.boxes.forEach((one, n) => {
      const before = whole.boxes[first].inputs.length === 0;
      if (one.inputs.length > 0 && (before || places[n].y < places[first].y)) first = n;
    });
    view.x = width / 2 - (places[first].x + whole.boxes[first].w / 2) * view.k;
    view.y = 20;
    apply();
  }
  function centre(path) {
    const rect = drawn.get(path)?.element.querySelector('rect').getBoundingClientRect();
    if (!rect) return;
    const stage = byId('stage').getBoundingClientRect();
    view.x += stage.x + stage.width / 2 - rect.x - rect.width / 2;
    view.y += stage.y + stage.height / 2 - rect.y - Math.min(rect.height, stage.height) / 2;
    apply();
    if (view.k < 0.5) zoom(0.8 / view.k, stage.width / 2, stage.height / 2);
  }
  // Opens the boxes around an instruction and centers it.
  function goTo(path) {
    const steps = path.split('/').slice(1, -1);
    let at = '', changed = false;
    for (const step of steps) {
      const holder = `${at}/${step.split('.')[0]}`;
      changed ||= !open.has(holder);
      open.add(holder);
      at += `/${step}`;
    }
    document.documentElement.classList.remove('listed');
    if (changed) redraw();
    choose(path);
    centre(path);
  }
  function toggle(path) {
    const before = drawn.get(path)?.element.getBoundingClientRect();
    if (!open.delete(path)) open.add(path);
    redraw();
    const after = drawn.get(path)?.element.getBoundingClientRect();
    if (before && after) {  // the box that was clicked stays where it is
      view.x += before.x - after.x;
      view.y += before.y - after.y;
      apply();
    }
  }

  // ---- Facts ----

  const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
  function amount(n, unit) {
    if (n < 1000) return `${Math.round(n * 100) / 100}${unit ? ` ${unit}` : ''}`;
    const steps = ['', 'k', 'M', 'G', 'T', 'P'];
    const e = Math.min(5, Math.floor(Math.log10(n) / 3));
    return `${(n / 1000 ** e).toPrecision(3)} ${steps[e]}${unit || ''}`;
  }
  function facts(one) {
    const rows = [['opcode', one.o], ['shape', one.S], ['buffer', amount(one.b, 'B')]];
    if (one.k[0] > 0) rows.push(['flops', amount(one.k[0])]);
    if (one.k[1] > 0) rows.push(['transcendentals', amount(one.k[1])]);
    if (one.k[2] > 0) rows.push(['bytes moved', amount(one.k[2], 'B')]);
    if (one.p) rows.push(['memory in use', amount(one.p, 'B')]);
    if (one.v !== undefined || one.l) rows.push(['value', one.l || one.v]);
    if (one.m) rows.push(['operation', one.m]);
    if (one.w) rows.push(['source', one.w]);
    for (const [name, value] of one.a || []) rows.push([name, value]);
    return rows;
  }
  const table = (rows) => `<table>${rows.map(([k, v]) => `<tr><th>${escape(k)}<td class="mono">${escape(v)}`).join('')}</table>`;
  function tipText(path) {
    const { instruction: one, computation } = instructionAt(path);
    const all = data.computations[computation].instructions;
    const rows = facts(one).map(([k, v]) => [k, v.length > 160 ? `${v.slice(0, 159)}…` : v]);
    if (one.i) rows.push(['operands', one.i.map((i) => all[i].n).join(', ')]);
    return `<b class="mono">${escape(one.n)}</b>${table(rows)}`;
  }
  function choose(path) {
    chosen = path;
    mark();
    const side = byId('facts');
    if (path === null) {
      side.innerHTML = byId('overview').innerHTML;
      return;
    }
    const { instruction: one, computation, graph, index } = instructionAt(path);
    const all = data.computations[computation].instructions;
    const to = (i) => `<a data-go="${graph}/${i}">${escape(all[i].n)}</a> <span class="mono">${escape(all[i].s)}</span>`;
    const users = all.flatMap((other, i) => ((other.i || []).includes(index) ? [i] : []));
    const list = (name, found) => (found.length === 0 ? '' : `<tr><th>${name}<td>${found.map(to).join('<br>')}`);
    const calls = (one.c || []).map(([role, c], slot) =>
      `<tr><th>${escape(role)}<td><a data-open="${path}" data-go="${path}.${slot}/${data.computations[c].root}">${escape(data.computations[c].name)}</a>`).join('');
    side.innerHTML = `<h2 class="mono">${escape(one.n)}</h2>${table(facts(one))}` +
      `<table>${list('operands', one.i || [])}${list('users', users)}${calls}</table>` +
      `<p class="mono">in ${escape(data.computations[computation].name)}</p>`;
  }

  // ---- Search ----

  function search() {
    const wanted = byId('search').value.trim().toLowerCase();
    matches = [];
    match = -1;
    if (wanted !== '') {
      for (const [c, way] of ways) {
        data.computations[c].instructions.forEach((one, i) => {
          if (`${one.n} ${one.o} ${one.t} ${one.m || ''}`.toLowerCase().includes(wanted)) matches.push(nodePath(way, i));
        });
      }
    }
    byId('found').textContent = wanted === '' ? '' : `${matches.length} found`;
    mark();
  }
  function next(step) {
    if (matches.length === 0) return;
    match = (match + step + matches.length) % matches.length;
    byId('found').textContent = `${match + 1} of ${matches.length}`;
    // A scalar constant has no box; its first user is shown instead.
    let path = matches[match];
    const { instruction, computation, graph, index } = instructionAt(path);
    if (isInline(instruction)) {
      const user = data.computations[computation].instructions.findIndex((o) => (o.i || []).includes(index));
      if (user >= 0) path = `${graph}/${user}`;
    }
    goTo(path);
  }

  // ---- Events ----

  const stage = byId('stage'), tip = byId('tip');
  let drag = null;
  stage.addEventListener('wheel', (event) => {
    event.preventDefault();
    const r = stage.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - r.x, event.clientY - r.y);
  }, { passive: false });
  stage.addEventListener('pointerdown', (event) => {
    drag = { x: event.clientX, y: event.clientY, moved: false, target: event.target };
  });
  stage.addEventListener('pointermove', (event) => {
    if (drag) {
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      if (!drag.moved) stage.setPointerCapture(event.pointerId);
      drag = { ...drag, x: event.clientX, y: event.clientY, moved: true };
      stage.classList.add('moving');
      tip.style.display = 'none';
      view.x += dx;
      view.y += dy;
      apply();
      return;
    }
    const node = event.target.closest('.node');
    tip.style.display = node ? 'block' : 'none';
    if (!node) return;
    if (tip.dataset.path !== node.dataset.path) {
      tip.dataset.path = node.dataset.path;
      tip.innerHTML = tipText(node.dataset.path);
    }
    const r = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - r.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + r.height > innerHeight ? Math.max(4, event.clientY - r.height - 10) : event.clientY + 18}px`;
  });
  stage.addEventListener('pointerleave', () => { tip.style.display = 'none'; });
  stage.addEventListener('pointerup', (event) => {
    const was = drag;
    drag = null;
    stage.classList.remove('moving');
    if (!was || was.moved) return;
    const handle = was.target.closest('[data-toggle]');
    if (handle) return toggle(handle.dataset.toggle);
    choose(was.target.closest('.node')?.dataset.path ?? null);
  });
  stage.addEventListener('dblclick', (event) => {
    const path = event.target.closest('.node')?.dataset.path;
    if (path && instructionAt(path).instruction.c) toggle(path);
  });
  byId('facts').addEventListener('click', (event) => {
    const link = event.target.closest('a');
    if (!link) return;
    if (link.dataset.open) open.add(link.dataset.open);
    if (link.dataset.open) redraw();
    goTo(link.dataset.go);
  });
  byId('search').addEventListener('input', search);
  byId('search').addEventListener('keydown', (event) => {
    if (event.key === 'Enter') next(event.shiftKey ? -1 : 1);
    if (event.key === 'Escape') { event.target.value = ''; search(); event.target.blur(); }
  });
  const middle = (factor) => { const r = stage.getBoundingClientRect(); zoom(factor, r.width / 2, r.height / 2); };
  const actions = {
    nearer: () => middle(1.3), farther: () => middle(1 / 1.3), fit,
    expand: () => { openAll(); redraw(); fit(); },
    collapse: () => { open.clear(); redraw(); fit(); },
    theme: () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'),
    listing: () => document.documentElement.classList.toggle('listed'),
  };
  for (const name in actions) byId(name).addEventListener('click', actions[name]);
  byId('colour').addEventListener('change', redraw);
  addEventListener('keydown', (event) => {
    if (event.target.tagName === 'INPUT' || event.target.tagName === 'SELECT' || event.ctrlKey || event.metaKey) return;
    if (event.key === '/') { event.preventDefault(); byId('search').focus(); }
    if (event.key === 'f') fit();
    if (event.key === '+') middle(1.3);
    if (event.key === '-') middle(1 / 1.3);
    if (event.key === 'Escape') choose(null);
  });
  const setTheme = (name) => { document.documentElement.dataset.theme = name; };

  // Opens boxes from the outside in, until the picture reaches the size limit.
  function openAll(only, limit = 6000) {
    let count = data.computations[data.entry].instructions.length;
    const visit = (graph, c) => data.computations[c].instructions.forEach((one, i) => {
      if (!one.c || (only && !only(one))) return;
      const inner = one.c.reduce((sum, [, called]) => sum + data.computations[called].instructions.length, 0);
      if (count + inner > limit) return;
      count += inner;
      open.add(nodePath(graph, i));
      one.c.forEach(([, called], slot) => visit(`${graph}/${i}.${slot}`, called));
    });
    visit('', data.entry);
  }

  document.documentElement.classList.add('live');
  setTheme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  if (data.computations[data.entry].instructions.length <= 200) {
    openAll((one) => one.o === 'fusion' && data.computations[one.c[0][1]].instructions.length <= 40, 400);
  }
  redraw();
  begin();
  choose(null);
  addEventListener('hashchange', () => location.hash === '' || find(location.hash.slice(1)));
  function find(name) {
    byId('search').value = decodeURIComponent(name);
    search();
    next(1);
  }
  if (location.hash !== '') find(location.hash.slice(1));
})();
